package source

import (
	"path/filepath"
	"slices"
	"strings"
)

// nameKind classifies an entry of a directory by its name.
type nameKind int

const (
	nameManifest   nameKind = iota // to be read
	nameVolumeLink                 // the links and directories by which the kubelet replaces volume files (..data)
	nameHidden                     // begins with a dot
	nameBackup                     // a copy made by an editor, a package manager or a user
	nameOther                      // any other name; a user may intend the file to be a manifest
)

var (
	manifestSuffixes = []string{".yaml", ".yml", ".json", ".manifest"}
	backupSuffixes   = []string{
		"~", ".bak", ".backup", ".old", ".orig", ".save", ".rej", ".tmp", ".swp", ".swo", ".swx", ".part",
		".rpmsave", ".rpmnew", ".rpmorig", ".dpkg-old", ".dpkg-new", ".dpkg-dist", ".dpkg-bak", ".dpkg-tmp",
		".ucf-old", ".ucf-new", ".ucf-dist", ".pacnew", ".pacsave", ".disabled",
	}
)

// IsManifest reports whether podd reads an entry with this name in a directory of manifests, unless
// Options.ReadsAnyName is set.
func IsManifest(name string) bool { return classifyName(name) == nameManifest }

// classifyName classifies a name. It classifies "4913" as nameBackup, because vim creates a file
// with this name to check whether a directory is writable.
func classifyName(name string) nameKind {
	ends := func(suffix string) bool { return strings.HasSuffix(name, suffix) }
	switch {
	case strings.HasPrefix(name, ".."):
		return nameVolumeLink
	case strings.HasPrefix(name, "."):
		return nameHidden
	case strings.HasPrefix(name, "#") && ends("#"), name == "4913", slices.ContainsFunc(backupSuffixes, ends):
		return nameBackup
	case slices.Contains(manifestSuffixes, filepath.Ext(name)):
		return nameManifest
	}
	return nameOther
}

// classify returns the kind of an entry with this name. If ReadsAnyName is set, it returns
// nameManifest instead of nameOther.
func (o Options) classify(name string) nameKind {
	kind := classifyName(name)
	if kind == nameOther && o.ReadsAnyName {
		return nameManifest
	}
	return kind
}
