package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"runtime/debug"
	"strings"
	"time"
)

// The fields of SPDX 2.3 that are told: https://spdx.github.io/spdx-spec/v2.3
type (
	document struct {
		Version       string         `json:"spdxVersion"`
		DataLicense   string         `json:"dataLicense"`
		ID            string         `json:"SPDXID"`
		Name          string         `json:"name"`
		Namespace     string         `json:"documentNamespace"`
		Creation      creation       `json:"creationInfo"`
		Packages      []pkg          `json:"packages"`
		Relationships []relationship `json:"relationships"`
	}
	creation struct {
		Created  string   `json:"created"`
		Creators []string `json:"creators"`
	}
	pkg struct {
		ID               string     `json:"SPDXID"`
		Name             string     `json:"name"`
		Version          string     `json:"versionInfo"`
		Download         string     `json:"downloadLocation"`
		FilesAnalyzed    bool       `json:"filesAnalyzed"`
		LicenseConcluded string     `json:"licenseConcluded"`
		LicenseDeclared  string     `json:"licenseDeclared"`
		Copyright        string     `json:"copyrightText"`
		Checksums        []checksum `json:"checksums,omitempty"`
		References       []external `json:"externalRefs,omitempty"`
	}
	checksum struct {
		Algorithm string `json:"algorithm"`
		Value     string `json:"checksumValue"`
	}
	external struct {
		Category string `json:"referenceCategory"`
		Type     string `json:"referenceType"`
		Locator  string `json:"referenceLocator"`
	}
	relationship struct {
		Of   string `json:"spdxElementId"`
		To   string `json:"relatedSpdxElement"`
		Type string `json:"relationshipType"`
	}
)

const unsaid = "NOASSERTION"

// sbom tells in SPDX what a program was built of, by what the toolchain left in it.
func (p program) sbom(version string) ([]byte, error) {
	data, err := os.ReadFile(p.path)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(data)
	digest := hex.EncodeToString(sum[:])
	d := document{
		Version: "SPDX-2.3", DataLicense: "CC0-1.0", ID: "SPDXRef-DOCUMENT", Name: p.name,
		Namespace: fmt.Sprintf("https://github.com/weir-edge/weir/spdx/%s-%s-%s-%s", p.name, version, p.arch, digest),
		Creation:  creation{p.made().Format(time.RFC3339), []string{"Tool: weir-release"}},
	}
	own := module(&debug.Module{Path: p.info.Main.Path, Version: version})
	own.ID, own.Name, own.LicenseDeclared = "SPDXRef-Program", p.name, "Apache-2.0"
	own.Checksums = []checksum{{"SHA256", digest}}
	d.Packages = append(d.Packages, own)
	d.Relationships = append(d.Relationships, relationship{d.ID, own.ID, "DESCRIBES"})
	toolchain := module(&debug.Module{Path: "stdlib", Version: strings.TrimPrefix(p.info.GoVersion, "go")})
	toolchain.LicenseDeclared = "BSD-3-Clause"
	for _, m := range append([]pkg{toolchain}, modules(p.info)...) {
		d.Packages = append(d.Packages, m)
		d.Relationships = append(d.Relationships, relationship{own.ID, m.ID, "DEPENDS_ON"})
	}
	out, err := json.MarshalIndent(d, "", "  ")
	return append(out, '\n'), err
}

func modules(info *debug.BuildInfo) (out []pkg) {
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		out = append(out, module(m))
	}
	return out
}

var notInIDs = regexp.MustCompile(`[^A-Za-z0-9.-]+`)

func module(m *debug.Module) pkg {
	return pkg{
		ID: "SPDXRef-" + notInIDs.ReplaceAllString(m.Path+"-"+m.Version, "-"), Name: m.Path, Version: m.Version,
		Download:         unsaid,
		LicenseConcluded: unsaid, LicenseDeclared: unsaid, Copyright: unsaid,
		References: []external{{"PACKAGE-MANAGER", "purl", "pkg:golang/" + m.Path + "@" + m.Version}},
	}
}
