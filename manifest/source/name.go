package source

import (
	"path/filepath"
	"slices"
	"strings"
)

// nameKind is what the name of a directory's entry says about it.
type nameKind int

const (
	nameManifest nameKind = iota // to be read
	namePlumbing                 // the links and directories of a ..data swap
	nameHidden                   // begins with a dot
	nameBackup                   // an editor's, a package manager's or a user's copy
	nameOther                    // not a manifest's name; perhaps meant as one
)

var (
	manifestSuffixes = []string{".yaml", ".yml", ".json"}
	backupSuffixes   = []string{
		"~", ".bak", ".backup", ".old", ".orig", ".save", ".rej", ".tmp", ".swp", ".swo", ".swx", ".part",
		".rpmsave", ".rpmnew", ".rpmorig", ".dpkg-old", ".dpkg-new", ".dpkg-dist", ".dpkg-bak", ".dpkg-tmp",
		".ucf-old", ".ucf-new", ".ucf-dist", ".pacnew", ".pacsave", ".disabled",
	}
)

// IsManifest tells whether a directory's entry of this name is read.
func IsManifest(name string) bool { return kindOf(name) == nameManifest }

// kindOf classifies a name. "4913" is the file by which vim tries out whether
// it may write in a directory.
func kindOf(name string) nameKind {
	ends := func(suffix string) bool { return strings.HasSuffix(name, suffix) }
	switch {
	case strings.HasPrefix(name, ".."):
		return namePlumbing
	case strings.HasPrefix(name, "."):
		return nameHidden
	case strings.HasPrefix(name, "#") && ends("#"), name == "4913", slices.ContainsFunc(backupSuffixes, ends):
		return nameBackup
	case slices.Contains(manifestSuffixes, filepath.Ext(name)):
		return nameManifest
	}
	return nameOther
}
