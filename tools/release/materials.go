package main

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// bill gives the bill of materials. It has no serial number and no time, so that it is
// the same whenever it is made.
func (l *linkage) bill(p platform) ([]byte, error) {
	bom := cdx.NewBOM()
	self := cdx.Component{
		BOMRef: reference("hdsd", l.version()), Type: cdx.ComponentTypeApplication, Name: "hdsd", Version: l.version(),
		Licenses: licensed("Apache-2.0"),
		Properties: &[]cdx.Property{
			{Name: "go:version", Value: l.info.GoVersion}, {Name: "go:os", Value: p.os}, {Name: "go:arch", Value: p.arch},
		},
	}
	bom.Metadata = &cdx.Metadata{Component: &self}
	components, needs := []cdx.Component{}, []string{}
	for _, m := range l.modules {
		sum, err := hashOf(m.Sum)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.Path, err)
		}
		ref := reference(m.Path, m.Version)
		components = append(components, cdx.Component{
			BOMRef: ref, Type: cdx.ComponentTypeLibrary, Name: m.Path, Version: m.Version, PackageURL: ref,
			Licenses: licensed(m.license), Hashes: &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: sum}},
		})
		needs = append(needs, ref)
	}
	for _, p := range l.packages {
		components = append(components, cdx.Component{
			BOMRef: p.reference(), Type: cdx.ComponentTypeLibrary, Name: p.name, Version: p.version, PackageURL: p.reference(),
			Licenses: licensed(p.license), Hashes: &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA512, Value: p.sum}},
		})
		needs = append(needs, p.reference())
	}
	bom.Components, bom.Dependencies = &components, &[]cdx.Dependency{{Ref: self.BOMRef, Dependencies: &needs}}
	var out bytes.Buffer
	err := cdx.NewBOMEncoder(&out, cdx.BOMFileFormatJSON).SetPretty(true).Encode(bom)
	return out.Bytes(), err
}

// reference is the package URL of a module.
func reference(path, version string) string { return "pkg:golang/" + path + "@" + version }

func licensed(id string) *cdx.Licenses {
	return &cdx.Licenses{{License: &cdx.License{ID: id}}}
}

// hashOf gives the SHA-256 in a sum of go.sum, as hexadecimal.
func hashOf(sum string) (string, error) {
	encoded, ok := strings.CutPrefix(sum, "h1:")
	if !ok {
		return "", fmt.Errorf("the sum %q is not of the form h1", sum)
	}
	raw, err := base64.StdEncoding.DecodeString(encoded)
	return hex.EncodeToString(raw), err
}
