"""Every process that a test starts finds the commands of this Python first, as in an activated environment.

torchrun and deepspeed may be nowhere else in reach; and two ninjas (this environment's and the system's) would take
turns in building the same op anew, since neither trusts the other's log.
"""

import os
import sys
from pathlib import Path

os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
