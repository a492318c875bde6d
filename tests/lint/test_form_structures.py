"""What other tools read, by their own rules: GitLab's code quality report, JUnit's XML, SARIF's positions."""

import json
import random
from xml.etree import ElementTree

from deepspeed_configs import lint, mutated, real_values
from jsonschema import Draft202012Validator
from sarif_schema import SARIF

from dsgen.lint.finding import Finding
from dsgen.report.lint_gitlab import lint_gitlab
from dsgen.report.lint_junit import lint_junit
from dsgen.report.lint_sarif import lint_sarif
from dsgen.report.lint_view import LintView

# GitLab documentation, "Code Quality report format": these are required, others are not read.
GITLAB = {
    "type": "array",
    "items": {
        "type": "object",
        "required": ["description", "check_name", "fingerprint", "severity", "location"],
        "properties": {
            "description": {"type": "string", "minLength": 1},
            "check_name": {"type": "string", "minLength": 1},
            "fingerprint": {"type": "string", "minLength": 1},
            "severity": {"enum": ["info", "minor", "major", "critical", "blocker"]},
            "location": {
                "type": "object",
                "required": ["path", "lines"],
                "properties": {
                    # Relative to the repository, and not ./ in front.
                    "path": {"type": "string", "pattern": r"^[^./]"},
                    "lines": {
                        "type": "object",
                        "required": ["begin"],
                        "properties": {"begin": {"type": "integer", "minimum": 1}},
                    },
                },
            },
        },
    },
}


def views() -> list[LintView]:
    rng = random.Random()
    found = []
    for number in range(40):
        texts = {}
        findings: list[Finding] = []
        for name in (f"a/ds {number}.json", f"b/ä{number}.json"):
            texts[name] = json.dumps(mutated(mutated(rng.choice(real_values()), rng), rng), indent=2)
            findings += lint(texts[name], name=name)
        found.append(LintView(list(texts), findings, texts))
    return found


def test_gitlab_reads_it() -> None:
    for view in views():
        report = json.loads(lint_gitlab(view))
        Draft202012Validator(GITLAB).validate(report)
        prints = [issue["fingerprint"] for issue in report]
        assert len(set(prints)) == len(prints), "GitLab keeps one issue of a fingerprint"


def test_junit_counts_what_it_holds() -> None:
    """The attributes that CI servers sum up, as in the schema of Jenkins' xUnit plugin."""
    for view in views():
        root = ElementTree.fromstring(lint_junit(view))
        assert root.tag == "testsuites"
        for suite in [root, *root]:
            cases = list(suite.iter("testcase"))
            assert int(suite.get("tests", "-1")) == len(cases)
            assert int(suite.get("failures", "-1")) == len(list(suite.iter("failure")))
        assert all(case.get("name") and case.get("classname") for case in root.iter("testcase"))
        assert all(failure.get("message") and failure.get("type") for failure in root.iter("failure"))


def test_sarif_points_into_the_text() -> None:
    validator = Draft202012Validator(SARIF, format_checker=Draft202012Validator.FORMAT_CHECKER)
    for view in views():
        report = json.loads(lint_sarif(view))
        validator.validate(report)
        (run,) = report["runs"]
        rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
        for result in run["results"]:
            assert rules[result["ruleIndex"]] == result["ruleId"]
            region = result["locations"][0]["physicalLocation"]["region"]
            # SARIF 2.1.0 3.30: the end does not lie before the start; columns count from 1, the end is exclusive.
            assert (region["startLine"], region["startColumn"]) <= (region["endLine"], region["endColumn"])
