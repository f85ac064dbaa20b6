#!/usr/bin/env bash
# Fails if a CRD of config/protection would replace OpenKruise's CRD of the same name: the
# budgets of OpenKruise would be stored with other fields. REPLACE_CRDS=true replaces it.
# Warns of OpenKruise's webhook for budgets, which denies all budgets while the feature gates
# of OpenKruise's budgets are off.
set -euo pipefail
crd=podunavailablebudgets.policy.kruise.io
# A field that every version of our CRD has, and no version of OpenKruise's CRD.
ours='{.metadata.name}/{.spec.versions[*].schema.openAPIV3Schema.properties.spec.properties.shadow.type}'
found=$(kubectl get crd "$crd" --ignore-not-found -o "jsonpath=$ours")
if [[ $found == "$crd/" && ${REPLACE_CRDS:-} != true ]]; then
  cat >&2 <<END
CRD $crd is of OpenKruise: it has no field spec.shadow. It was not replaced. Either
- keep the budgets of OpenKruise, and install Breakwater without its protection:
    make apply PARTS='config/core config/permission'
- or turn them off in OpenKruise (docs/protection/openkruise.md), and let Breakwater guard them:
    make apply REPLACE_CRDS=true
END
  exit 1
fi
# Our webhook has the same name, but is in another configuration.
names=$(kubectl get validatingwebhookconfiguration kruise-validating-webhook-configuration --ignore-not-found -o 'jsonpath={.webhooks[*].name}')
if [[ " $names " == *" vpodunavailablebudget.kb.io "* ]]; then
  echo "warning: OpenKruise's webhook vpodunavailablebudget.kb.io denies budgets: delete it (docs/protection/openkruise.md)" >&2
fi
