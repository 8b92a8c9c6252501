{{- define "forwarder.name" -}}
{{- if contains "kbind-forwarder" .Release.Name }}{{ .Release.Name | trunc 53 | trimSuffix "-" }}{{ else }}{{ printf "%s-kbind-forwarder" .Release.Name | trunc 53 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "forwarder.selector" -}}
app.kubernetes.io/name: kbind-forwarder
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "forwarder.labels" -}}
{{ include "forwarder.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "forwarder.image" -}}
{{- $repository := required "image.repository is needed" .Values.image.repository -}}
{{- if .Values.image.digest }}{{ $repository }}@{{ .Values.image.digest }}{{ else }}{{ $repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}
