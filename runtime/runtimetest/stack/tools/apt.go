package tools

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
)

// aptGetWithRetry runs apt-get in dir. If apt-get fails, perhaps because the package lists are
// missing or old, aptGetWithRetry updates the lists and runs the command once more.
func aptGetWithRetry(ctx context.Context, dir string, args ...string) error {
	firstErr := aptGet(ctx, dir, args...)
	if firstErr == nil || ctx.Err() != nil {
		return firstErr
	}
	if err := aptGet(ctx, dir, "update"); err != nil {
		return errors.Join(firstErr, err)
	}
	return aptGet(ctx, dir, args...)
}

func aptGet(ctx context.Context, dir string, args ...string) error {
	// Wait, because another apt process on the host may have the lock for a while.
	args = append([]string{"-q", "-o", "DPkg::Lock::Timeout=120"}, args...)
	_, err := run(ctx, dir, []string{"DEBIAN_FRONTEND=noninteractive", "LC_ALL=C"}, "apt-get", args...)
	return err
}

// unpackPackages downloads Debian packages and unpacks their files below dir. It does not install
// the packages, so that the system does not change and no service starts.
func unpackPackages(ctx context.Context, dir string, packages ...string) ([]debFile, error) {
	if err := aptGetWithRetry(ctx, dir, append([]string{"download"}, packages...)...); err != nil {
		return nil, err
	}
	paths, err := filepath.Glob(filepath.Join(dir, "*.deb"))
	if err != nil {
		return nil, fmt.Errorf("listing the downloaded Debian packages: %w", err)
	}
	var files []debFile
	for _, p := range paths {
		if _, err := run(ctx, dir, nil, "dpkg-deb", "-x", p, dir); err != nil {
			return nil, err
		}
		files = append(files, parseDebFile(p))
	}
	return files, nil
}

// A debFile is the parsed name of a package file.
type debFile struct{ pkg, version string }

// parseDebFile parses the path of a package, such as "runc_1.1.5+ds1-1+deb12u1_amd64.deb". The
// version is only the upstream version number, in this example 1.1.5.
func parseDebFile(path string) debFile {
	pkg, rest, _ := strings.Cut(filepath.Base(path), "_")
	version, _, _ := strings.Cut(rest, "_")
	if _, upstreamVersion, ok := strings.Cut(version, "%3a"); ok { // the upstream version follows the epoch
		version = upstreamVersion
	}
	return debFile{pkg, version[:len(version)-len(strings.TrimLeft(version, "0123456789."))]}
}
