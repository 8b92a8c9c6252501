#!/usr/bin/env bash
# Checks the packaged stack without an account: cfn-lint, and a deployment into moto's server that test/stack reads back.
# Both come from PyPI, pinned in infra/checks/requirements.txt, into a virtual environment that is made once.
set -euo pipefail
cd "$(dirname "$0")/.."
package=.build/package
requirements=infra/checks/requirements.txt
helm_version=v3.19.5
wanted=$(sha256sum "$requirements" | cut -c1-12)
tools="${XDG_CACHE_HOME:-$HOME/.cache}/kbind-serverless/stack-tools-$wanted"
if [ ! -f "$tools/complete" ]; then
  rm -rf "$tools"
  python3 -m venv "$tools"
  "$tools/bin/pip" install --quiet --disable-pip-version-check --no-deps -r "$requirements"
  touch "$tools/complete"
fi
[ -d "$package" ] || { echo "No package: run npm run package first." >&2; exit 1; }

# W3005: osls writes DependsOn beside the reference that makes it needless. W8003: a condition on a parameter of osls is
# constant in the template. W1033: so is the empty list of subnets of a stack outside a VPC.
"$tools/bin/cfn-lint" --regions eu-central-1 us-east-1 -i W3005 W8003 W1033 -t "$package"/cloudformation-template-*.json
# The same stack inside a VPC, where W1033 must not appear.
osls package --package .build/package-vpc \
  --param 'subnetIds=subnet-0123456789abcdef0,subnet-0123456789abcdef1' --param 'securityGroupIds=sg-0123456789abcdef0' >/dev/null
"$tools/bin/cfn-lint" --regions eu-central-1 -i W3005 W8003 -t .build/package-vpc/cloudformation-template-update-stack.json
echo 'cfn-lint: nothing found'

# The forwarder's chart is rendered by Helm itself, built once from its Go module where there is none.
HELM=${HELM:-$(command -v helm || true)}
if [ -z "$HELM" ]; then
  HELM="${XDG_CACHE_HOME:-$HOME/.cache}/kbind-serverless/helm-$helm_version/helm"
  if [ ! -x "$HELM" ]; then
    command -v go >/dev/null || { echo 'Neither helm nor go is here: the chart cannot be checked.' >&2; exit 1; }
    GOBIN=$(dirname "$HELM") go install "helm.sh/helm/v3/cmd/helm@$helm_version"
  fi
fi
export HELM

mkdir -p .build/stack
"$tools/bin/python" infra/checks/deploy.py "$package" . .build/stack/deployed.json
node scripts/run-tests.ts stack
