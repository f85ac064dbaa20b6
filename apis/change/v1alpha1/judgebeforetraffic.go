package v1alpha1

// JudgeBeforeTrafficAnnotation is an annotation of a Knative Service or of its namespace. With value
// "true" a new Revision gets no traffic until the first of its batches passed. The value of the
// Service overrides that of the namespace. Policy breakwater-judge-before-traffic denies other values.
const JudgeBeforeTrafficAnnotation = "breakwater.dev/judge-before-traffic"

// JudgesBeforeTraffic returns the setting of an object; known is false if it has none, or an invalid one.
func JudgesBeforeTraffic(annotations map[string]string) (on, known bool) {
	value := annotations[JudgeBeforeTrafficAnnotation]
	return value == "true", value == "true" || value == "false"
}
