"""What a test run starts from, however it was called: also by path, by a shell in the background, by another program.

- Every process that a test starts finds the commands of this Python first, as in an activated environment. torchrun and
  deepspeed may be nowhere else in reach; and two ninjas (this environment's and the system's) would take turns in
  building the same op anew, since neither trusts the other's log.
- Interrupts are heard: a shell makes what it runs in the background deaf to them, which is handed down.
"""

import os
import signal
import sys
from pathlib import Path

os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
