package pull

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// A CredentialFile is a file that may contain registry credentials of the node.
type CredentialFile struct {
	Path string
	// IsLegacy is set for a file .dockercfg, which contains only the entries of a config.json.
	IsLegacy bool
}

// CredentialFiles are the files that may contain registry credentials of the node. Only the first
// valid file is used; its credentials are not combined with those of other files.
type CredentialFiles []CredentialFile

// NewCredentialFiles returns the files in which the kubelet searches for credentials, in its order
// (pkg/credentialprovider/config.go): a config.json in the root directory, in the working directory,
// in the directory .docker of the home directory and in /.docker, and then a .dockercfg in the root
// directory, in the working directory, in the home directory and in /. The parameters workDir and
// home may be "" to omit these directories. The files need not exist.
func NewCredentialFiles(rootDir, workDir, home string) CredentialFiles {
	var files CredentialFiles
	for _, isLegacy := range []bool{false, true} {
		for i, dir := range []string{rootDir, workDir, home, "/"} {
			name := "config.json"
			switch {
			case dir == "":
				continue
			case isLegacy:
				name = ".dockercfg"
			case i > 1: // the home directory and /
				name = ".docker/config.json"
			}
			files = append(files, CredentialFile{filepath.Join(dir, name), isLegacy})
		}
	}
	return files
}

// Credentials returns the credentials for an image in the first valid file. The most specific entry
// comes first. Credentials reads the files in each call. If there are no credentials for the image,
// and an invalid file precedes the valid one, Credentials returns an error. Errors never quote a file.
func (f CredentialFiles) Credentials(image string) ([]*cri.AuthConfig, error) {
	var errs []error
	for _, file := range f {
		config, err := readConfig(file)
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
			continue
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("reading registry credentials %s: %w", file.Path, err))
			continue
		}
		var auths []*cri.AuthConfig
		for _, c := range sortSpecificFirst(config.entriesFor(image)) {
			auths = append(auths, c.auth)
		}
		if len(auths) > 0 {
			return auths, nil
		}
		break
	}
	return nil, errors.Join(errs...)
}

// versions returns the versions of the files.
func (f CredentialFiles) versions() []fileVersion {
	versions := make([]fileVersion, len(f))
	for i, file := range f {
		versions[i] = versionOf(file.Path)
	}
	return versions
}

// firstExisting returns the path of the first file that exists. If there is none, it returns the
// path of the first file, where a user can add credentials. It returns "" if f is empty.
func (f CredentialFiles) firstExisting() string {
	for _, file := range f {
		if versionOf(file.Path) != (fileVersion{}) {
			return file.Path
		}
	}
	if len(f) == 0 {
		return ""
	}
	return f[0].Path
}
