{{- define "gvDetails" -}}
## {{ .GroupVersionString }}

{{ $gv := . }}{{ range $i, $kind := .SortedKinds }}{{ if $i }}, {{ end }}[{{ $kind }}](#{{ template "anchor" ($gv.TypeForKind $kind) }}){{ end }}
{{ range .SortedKinds }}{{ template "type" ($gv.TypeForKind .) }}{{ end -}}
{{ range .SortedTypes }}{{ if not (has .Name $gv.SortedKinds) }}{{ template "type" . }}{{ end }}{{ end -}}
{{- end -}}
