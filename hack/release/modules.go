// SPDX-License-Identifier: Apache-2.0

package main

import (
	"debug/buildinfo"
	"os"
	"time"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
)

// writeModules writes the modules that the linker put into the binary, as a software bill of materials (CycloneDX).
func (r Release) writeModules(p program, binary, file string) error {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return err
	}
	component := func(path, version string) cyclonedx.Component {
		url := "pkg:golang/" + path + "@" + version
		return cyclonedx.Component{
			Type: cyclonedx.ComponentTypeLibrary, Name: path, Version: version, PackageURL: url, BOMRef: url,
		}
	}
	components := []cyclonedx.Component{component("stdlib", info.GoVersion)}
	for _, module := range info.Deps {
		if module.Replace != nil {
			module = module.Replace
		}
		components = append(components, component(module.Path, module.Version))
	}
	bom := cyclonedx.NewBOM()
	bom.Metadata = &cyclonedx.Metadata{
		Timestamp: r.Created.UTC().Format(time.RFC3339),
		Component: &cyclonedx.Component{
			Type: cyclonedx.ComponentTypeApplication, Name: p.name, Version: r.Version, BOMRef: p.name,
			Description: p.description,
		},
	}
	bom.Components = &components

	w, err := os.Create(file)
	if err != nil {
		return err
	}
	defer w.Close()
	if err := cyclonedx.NewBOMEncoder(w, cyclonedx.BOMFileFormatJSON).SetPretty(true).Encode(bom); err != nil {
		return err
	}
	return w.Close()
}
