// Package filename decides which entries in a directory of manifests podd reads, by their names.
package filename

import (
	"path/filepath"
	"slices"
	"strings"
)

// A Kind classifies an entry of a directory by its name.
type Kind int

// The kinds of entries. podd reads an entry of the kind Manifest.
const (
	Manifest   Kind = iota
	VolumeLink      // the links and directories by which the kubelet replaces volume files (..data)
	Hidden          // begins with a dot
	Backup          // a copy made by an editor, a package manager or a user
	Other           // any other name; a user may intend the file to be a manifest
)

var (
	manifestSuffixes = []string{".yaml", ".yml", ".json", ".manifest"}
	backupSuffixes   = []string{
		"~", ".bak", ".backup", ".old", ".orig", ".save", ".rej", ".tmp", ".swp", ".swo", ".swx", ".part",
		".rpmsave", ".rpmnew", ".rpmorig", ".dpkg-old", ".dpkg-new", ".dpkg-dist", ".dpkg-bak", ".dpkg-tmp",
		".ucf-old", ".ucf-new", ".ucf-dist", ".pacnew", ".pacsave", ".disabled",
	}
)

// Classify returns the kind of an entry with this name. It returns Backup for "4913", because vim
// creates a file with this name to check whether a directory is writable.
func Classify(name string) Kind {
	ends := func(suffix string) bool { return strings.HasSuffix(name, suffix) }
	switch {
	case strings.HasPrefix(name, ".."):
		return VolumeLink
	case strings.HasPrefix(name, "."):
		return Hidden
	case strings.HasPrefix(name, "#") && ends("#"), name == "4913", slices.ContainsFunc(backupSuffixes, ends):
		return Backup
	case slices.Contains(manifestSuffixes, filepath.Ext(name)):
		return Manifest
	}
	return Other
}

// IgnoredReason returns the reason why podd does not read an entry of this kind, as a clause such as
// "its name begins with a dot". It returns "" for Manifest.
func (k Kind) IgnoredReason() string {
	switch k {
	case VolumeLink, Hidden:
		return "its name begins with a dot"
	case Backup:
		return "its name is that of a backup file"
	case Other:
		return "its name does not end in " + strings.Join(manifestSuffixes, ", ")
	}
	return ""
}
