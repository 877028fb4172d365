{{- define "gvList" -}}
<!-- Written by "make docs" from the types in pkg/apis. Do not edit. -->

# API

Every field of the objects of Muster. `kubectl explain` prints the same. How they are used: [workloads.md](workloads.md) and
[topology.md](topology.md) for PodGroups, [lifecycle.md](lifecycle.md), [updates.md](updates.md) and [training.md](training.md) for PodCliqueSets.
{{ range . }}
{{ template "gvDetails" . }}
{{- end }}
{{- end -}}
