#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Fails if a program in bin/ contains code with a known vulnerability. Where the database cannot be reached it checks
# nothing, and says so.
#
#   GOVULNDB=https://mirror.example.com hack/vulnerabilities.sh   # another database than https://vuln.go.dev
set -eu
cd "$(dirname "$0")/.."

db=${GOVULNDB:-https://vuln.go.dev}
# It names the state of the database only if it could read it.
if ! timeout 30 bin/govulncheck -db "$db" -version | grep '^DB updated'; then
	echo "NOT CHECKED: the database of vulnerabilities, $db, cannot be read here; GOVULNDB names another one" >&2
	exit
fi
status=0
for program in bin/muster-scheduler bin/muster-controller bin/muster-wait bin/kubectl-muster; do
	echo "govulncheck $program"
	bin/govulncheck -db "$db" -mode binary "$program" || status=1
done
exit $status
