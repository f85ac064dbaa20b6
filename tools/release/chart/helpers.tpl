{{/* Settings of every pod. */}}
{{- define "breakwater.pullSecrets" -}}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* Settings of the pods of Deployments. Knative Serving does not accept them for its Services. */}}
{{- define "breakwater.pod" -}}
{{- include "breakwater.pullSecrets" . }}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
