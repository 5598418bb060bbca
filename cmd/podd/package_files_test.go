package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"podd/cmd/podd/docs"
	"podd/cmd/podd/internal/config"
)

// packageFiles is the directory of the files that podd's packages (.deb and others) install.
const packageFiles = "../package/files"

// readPackageFile returns the content of a file in packageFiles.
func readPackageFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(packageFiles, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestPackageFiles_Unit checks that the page "install" shows the systemd unit that the packages
// install. TestPages_Commands checks the commands on this page. TestPackageFiles_Unit only checks that
// poddCommands finds the two commands of the unit.
func TestPackageFiles_Unit(t *testing.T) {
	unit := readPackageFile(t, "podd.service")
	page, _ := docs.Page("install")
	if !slices.Contains(codeBlocks(page), unit) {
		t.Errorf("the page \"install\" does not contain the unit podd.service:\n%s", unit)
	}
	if commands := poddCommands(unit); len(commands) != 2 {
		t.Errorf("podd.service: got the commands %q, want podd run and podd shutdown", commands)
	}
}

// commentedField matches the # before a field that is commented out. In comments with text, a space
// follows the #.
var commentedField = regexp.MustCompile(`(?m)^#([a-z])`)

// TestPackageFiles_Configuration checks that podd loads the configuration file of the packages without
// errors and warnings. It checks the file as installed, and with all fields that are commented out.
func TestPackageFiles_Configuration(t *testing.T) {
	text := readPackageFile(t, "config.yaml")
	complete := commentedField.ReplaceAllString(text, "$1")
	if n := strings.Count(complete, "\n#"); n == strings.Count(text, "\n#") {
		t.Error("config.yaml: got no fields that are commented out, want some")
	}
	for name, content := range map[string]string{"as installed": text, "with all fields": complete} {
		file := filepath.Join(t.TempDir(), "config.yaml")
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		flags := config.Flags{FileFlags: config.FileFlags{Config: file}}
		_, warnings, err := config.Load(flags, config.HostFacts{Program: "podd", Hostname: "node-1", UsesCgroupV2: true})
		if err != nil || len(warnings) > 0 {
			t.Errorf("%s: got warnings %v, error %v; want none", name, warnings, err)
			continue
		}
		if got, want := lookup(loadEffective(t, flags), "staticPodPath"), "/etc/podd/manifests"; got != want {
			t.Errorf("%s: got staticPodPath %q, want %q", name, got, want)
		}
	}
}
