{{- /* A value, or where it is null the JSON beside it. */ -}}
{{- define "weir.or" -}}
{{- $value := index . 0 -}}
{{- if kindIs "invalid" $value }}{{ index . 1 }}{{ else }}{{ toJson $value }}{{ end -}}
{{- end -}}

{{- /* The reference of an image of the values. A registry stands for its host and folders. */ -}}
{{- define "weir.image" -}}
{{- $top := index . 0 -}}
{{- $image := index . 1 -}}
{{- if $top.Values.registry }}{{ $top.Values.registry }}/{{ base $image.repository }}{{ else }}{{ $image.repository }}{{ end -}}
{{- if $image.digest }}@{{ $image.digest }}{{ else }}:{{ $image.tag | default $top.Chart.AppVersion }}{{ end -}}
{{- end -}}

{{- /* The names of Secrets by which images are pulled, one in a line. */ -}}
{{- define "weir.pullSecrets" -}}
{{- range .Values.imagePullSecrets }}{{ .name }}{{ "\n" }}{{ end -}}
{{- end -}}

{{- /* Whether a definition of OpenYurt's is kept by this release: not where somebody else has it. */ -}}
{{- define "weir.ownsDefinition" -}}
{{- $top := index . 0 -}}
{{- $crds := $top.Values.crds -}}
{{- if and $crds.enabled (ne $crds.nodePools "never") -}}
{{- $there := lookup "apiextensions.k8s.io/v1" "CustomResourceDefinition" "" (index . 1) -}}
{{- $by := dig "metadata" "annotations" "meta.helm.sh/release-name" "" $there -}}
{{- if or (eq $crds.nodePools "always") (not $there) (eq $by $top.Release.Name) }}yes{{ end -}}
{{- end -}}
{{- end -}}

{{- define "weir.monitoringNamespace" -}}
{{ .Values.metrics.namespace | default .Release.Namespace }}
{{- end -}}

{{- /* What makes an object one of a hook. The Job of one that failed stays, so that its log can be read. The rest goes then too, or stays if helm itself is stopped:
what it grants, the Job of weir-after-uninstall takes away from itself. */ -}}
{{- define "weir.hook" -}}
labels:
  app.kubernetes.io/part-of: weir
annotations:
  helm.sh/hook: {{ index . 0 }}
  helm.sh/hook-weight: {{ index . 1 | quote }}
  helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
  helm.sh/hook-output-log-policy: hook-failed
{{- end -}}

{{- define "weir.gateFolder" -}}
/etc/weir/gate
{{- end -}}

{{- /* The Secret with the certificate of weir-gate, its key, and its authority. */ -}}
{{- define "weir.gateSecret" -}}
{{ .Values.gate.tls.existingSecret | default "weir-gate-tls" }}
{{- end -}}

{{- /* What weir-manager is told of weir-gate: a JSON list of flags. */ -}}
{{- define "weir.gateFlags" -}}
{{- if (.Values.gate).enabled -}}
{{- if not .Values.gate.address }}{{ fail "gate.address is empty: want the host:port at which edge nodes reach weir-gate, for example 203.0.113.10:30273" }}{{ end -}}
{{- $flags := list (printf "--gate=https://%s" .Values.gate.address) (printf "--gate-ca-file=%s/ca.crt" (include "weir.gateFolder" .)) -}}
{{- if (.Values.gate.wayIn).enabled }}{{ $flags = append $flags (printf "--gate-ways=%d" (int .Values.gate.replicas)) }}{{ end -}}
{{- toJson $flags -}}
{{- else }}[]{{ end -}}
{{- end -}}

{{- /* What weir-gate is told of pods: a JSON list of flags. */ -}}
{{- define "weir.gatePods" -}}
{{- $pods := .Values.gate.pods -}}
{{- if ($pods).enabled -}}
{{- if not (.Values.gate.wayIn).enabled }}{{ fail "gate.pods.enabled is true and gate.wayIn.enabled is not: pods are reached by the way in" }}{{ end -}}
{{- $flags := list "--pods" "--kubelet-client-certificate=/etc/weir/kubelet/tls.crt" "--kubelet-client-key=/etc/weir/kubelet/tls.key" -}}
{{- if $pods.verifyKubelets -}}
{{- $flags = append $flags "--kubelet-certificate-authority=/etc/weir/kubelet/ca.crt" -}}
{{- end -}}
{{- toJson $flags -}}
{{- else -}}
[]
{{- end -}}
{{- end }}

{{- /* A value of weir-gate, or where it is null that of weir-manager, or the JSON beside it. */ -}}
{{- define "weir.gateOr" -}}
{{- $values := index . 0 -}}
{{- $name := index . 1 -}}
{{- $value := index $values.gate $name -}}
{{- if kindIs "invalid" $value }}{{ $value = index $values.manager $name }}{{ end -}}
{{- include "weir.or" (list $value (index . 2)) -}}
{{- end -}}
