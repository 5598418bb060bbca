package tools

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
)

// repositoryPackages lists the packages in the repository of EnsureRepository. The repository also
// contains their dependencies.
var repositoryPackages = []string{"containerd", "containernetworking-plugins"}

// EnsureRepository returns the directory of a Debian repository. If the repository does not exist,
// EnsureRepository creates it. It contains the packages on which the .deb package of podd depends.
// apt reads it with the line "deb [trusted=yes] file:DIR ./".
func EnsureRepository(ctx context.Context, log *slog.Logger) (dir string, err error) {
	c, err := openCache(log, stackLock)
	if err != nil {
		return "", err
	}
	if err := c.lock(ctx); err != nil {
		return "", err
	}
	defer c.unlock()
	release, err := codename()
	if err != nil {
		return "", err
	}
	dir, err = c.ensureEntry("repository-"+release, func(dir string) error { return makeRepository(ctx, dir) })
	if err != nil {
		return "", fmt.Errorf("creating a repository of Debian packages: %w", err)
	}
	return dir, nil
}

// makeRepository downloads packages into dir and writes their index. It gives apt an empty list of
// installed packages, so that apt downloads all dependencies.
func makeRepository(ctx context.Context, dir string) error {
	status := filepath.Join(dir, "status")
	if err := os.WriteFile(status, nil, 0o644); err != nil {
		return err
	}
	args := append([]string{"-y", "-o", "Dir::State::status=" + status, "-o", "Dir::Cache::archives=" + dir,
		"-o", "APT::Sandbox::User=root", "--no-install-recommends", "--download-only", "install"}, repositoryPackages...)
	if err := aptGetWithRetry(ctx, dir, args...); err != nil {
		return err
	}
	packages, err := filepath.Glob(filepath.Join(dir, "*.deb"))
	if err != nil {
		return err
	}
	var index strings.Builder
	for _, p := range packages {
		fields, err := run(ctx, dir, nil, "dpkg-deb", "--field", p)
		if err != nil {
			return err
		}
		content, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		fmt.Fprintf(&index, "%s\nFilename: ./%s\nSize: %d\nSHA256: %x\n\n", strings.TrimSpace(string(fields)), filepath.Base(p), len(content), sha256.Sum256(content))
	}
	return os.WriteFile(filepath.Join(dir, "Packages"), []byte(index.String()), 0o644)
}
