package podmeta

import (
	"errors"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// ErrNoBundle says why no certificate of the centre or the init-action-server can be
// verified, and what to do.
var ErrNoBundle = errors.New("ConfigMap " + v1alpha1.SystemNamespace + "/" + BundleName + " has no CA certificate in key ca.crt: " +
	"Deployment permission-webhook writes it within a minute; if it does not, apply config/permission/401-certificates.yaml again and read the log of the Deployment")
