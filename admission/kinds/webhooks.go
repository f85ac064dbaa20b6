package kinds

import admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

func mutatingName(w admissionregistrationv1.MutatingWebhook) string { return w.Name }

func validatingName(w admissionregistrationv1.ValidatingWebhook) string { return w.Name }

// webhook returns that of a name.
func webhook[T any](all []T, nameOf func(T) string, name string) (T, bool) {
	for _, w := range all {
		if nameOf(w) == name {
			return w, true
		}
	}
	var none T
	return none, false
}
