{{- define "beeuni.fullname" -}}
{{- if contains "beeuni" .Release.Name -}}{{ .Release.Name | trunc 40 | trimSuffix "-" }}{{- else -}}{{ printf "%s-beeuni" .Release.Name | trunc 40 | trimSuffix "-" }}{{- end -}}
{{- end -}}

{{- define "beeuni.labels" -}}
app.kubernetes.io/name: beeuni
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/part-of: beeuni
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- with .component }}
app.kubernetes.io/component: {{ . }}
{{- end }}
{{- end -}}

{{- define "beeuni.selector" -}}
app.kubernetes.io/name: beeuni
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{- /* Whole image reference of {root, image}: digest wins over the tag, the tag falls back to image.tag and the appVersion. */ -}}
{{- define "beeuni.image" -}}
{{- $repository := .image.repository -}}
{{- if .root.Values.image.registry }}{{ $repository = printf "%s/%s" (trimSuffix "/" .root.Values.image.registry) $repository }}{{ end -}}
{{- if .image.digest -}}{{ printf "%s@%s" $repository .image.digest }}{{- else -}}{{ printf "%s:%s" $repository (coalesce .image.tag .root.Values.image.tag .root.Chart.AppVersion) }}{{- end -}}
{{- end -}}

{{- define "beeuni.podSecurityContext" -}}
runAsNonRoot: true
runAsUser: 1000
runAsGroup: 1000
fsGroup: 1000
fsGroupChangePolicy: OnRootMismatch
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- define "beeuni.containerSecurityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}

{{- define "beeuni.operatorServiceAccount" -}}{{ include "beeuni.fullname" . }}-operator{{- end -}}
{{- define "beeuni.controlPlaneServiceAccount" -}}{{ include "beeuni.fullname" . }}-control-plane{{- end -}}
{{- define "beeuni.controlPlaneHost" -}}{{ include "beeuni.fullname" . }}-control-plane.{{ .Release.Namespace }}.svc{{- end -}}

{{- /* The pod's own Kubernetes token, mounted by hand because automounting is off. */ -}}
{{- define "beeuni.kubernetesTokenVolume" -}}
- name: kubernetes
  projected:
    defaultMode: 0440
    sources:
    - serviceAccountToken: {expirationSeconds: 3607, path: token}
    - configMap: {name: kube-root-ca.crt, items: [{key: ca.crt, path: ca.crt}]}
    - downwardAPI: {items: [{path: namespace, fieldRef: {fieldPath: metadata.namespace}}]}
{{- end -}}
