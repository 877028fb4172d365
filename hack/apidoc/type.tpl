{{- /* Two groups have a TopologyConstraint: the anchors of types have their group before them. */ -}}
{{- define "anchor" }}{{ dir .Package | base }}-{{ lower .Name }}{{ end -}}

{{- define "type" -}}
{{- if markdownShouldRenderType . }}
<a id="{{ template "anchor" . }}"></a>
### {{ .Name }}

{{ .Doc }}
{{ if .References }}
In {{ range $i, $t := .SortedReferences }}{{ if $i }}, {{ end }}[{{ $t.Name }}](#{{ template "anchor" $t }}){{ end }}.
{{ end -}}
{{ $group := printf "](#%s-" (dir .Package | base) -}}
{{ if .Members }}
| field | type | default | |
|---|---|---|---|
{{ range .Members -}}
| `{{ .Name }}` | {{ markdownRenderType .Type | replace "](#" $group }} | {{ if .Default }}`{{ .Default }}`{{ end }} | {{ .Doc | replace "\n" " " | markdownRenderFieldDoc }}
{{- range .Validation }}{{ if and (ne . "Optional: {}") (not (contains "](" .)) }} {{ . | trimSuffix ": {}" | replace "|" "\\|" }}.{{ end }}{{ end }} |
{{ end -}}
{{ end -}}
{{ if .EnumValues }}
| value | |
|---|---|
{{ range .EnumValues -}}
| `{{ .Name }}` | {{ .Doc | trim | replace "\n" " " | markdownRenderFieldDoc }} |
{{ end -}}
{{ end -}}
{{ end -}}
{{- end -}}
