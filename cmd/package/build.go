package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"podd/cmd/internal/release"
)

// A builder builds the packages of one version of podd.
type builder struct {
	root    string // the root of the repository
	version version
	created time.Time // the time of every file in the packages
	archs   []string  // keys of the variable archs
	formats []string  // the package formats of nfpm, and tar.gz
	// binary is the path of a program that the packages contain in place of podd. If it is "",
	// the builder builds podd.
	binary string
}

type arch struct {
	goarch string
	env    string // environment variable for go build that selects the instruction set
	nfpm   string // name of the architecture in nfpm, which translates it for each package format
}

// archs contains the architectures by name. The instruction sets are the oldest ones that podd
// supports.
var archs = map[string]arch{
	"amd64": {"amd64", "GOAMD64=v1", "amd64"},
	"arm64": {"arm64", "GOARM64=v8.0", "arm64"},
	"armv7": {"arm", "GOARM=7", "arm7"},
}

// buildAll builds the packages of all architectures into dir. It replaces the packages of an earlier
// build in dir.
func (b builder) buildAll(ctx context.Context, dir string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return fmt.Errorf("building the packages: %w", err)
	}
	if err := removeEarlier(dir); err != nil {
		return fmt.Errorf("removing the packages of an earlier build: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("building the packages: %w", err)
	}
	for _, name := range b.archs {
		if err := b.buildArch(ctx, dir, name); err != nil {
			return fmt.Errorf("building the packages for %s: %w", name, err)
		}
	}
	return writeChecksums(dir)
}

// removeEarlier removes the files in dir with the names of packages. If dir contains
// anything else, it removes nothing and returns an error, because the user may have chosen the
// wrong directory.
func removeEarlier(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		isPackage := strings.HasPrefix(e.Name(), "podd_") || strings.HasPrefix(e.Name(), "podd-") || e.Name() == checksumsFile
		if !isPackage || !e.Type().IsRegular() {
			return fmt.Errorf("%s is not a package of podd; choose another directory", filepath.Join(dir, e.Name()))
		}
	}
	for _, e := range entries {
		if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// buildArch builds the packages of an architecture into dir.
func (b builder) buildArch(ctx context.Context, dir, name string) error {
	stage, err := os.MkdirTemp("", "podd-stage-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(stage)
	if err := b.fillStage(ctx, archs[name], stage); err != nil {
		return err
	}
	base := "podd_" + b.version.linux + "_linux_" + name
	if err := copyFile(filepath.Join(stage, "sbom.cdx.json"), filepath.Join(dir, base+".cdx.json")); err != nil {
		return fmt.Errorf("copying the SBOM: %w", err)
	}
	for _, format := range b.formats {
		if format == "tar.gz" {
			err = b.writeArchive(filepath.Join(dir, base+".tar.gz"), base, stage)
		} else {
			err = b.runNFPM(ctx, format, archs[name], stage, dir)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// buildBinary builds a static podd, as make build does, or copies b.binary.
func (b builder) buildBinary(ctx context.Context, a arch, to string) error {
	if b.binary != "" {
		return copyFile(b.binary, to)
	}
	build := release.Command(ctx, a.goarch, to, "-X main.version="+b.version.binary)
	build.Dir = b.root
	build.Env = append(build.Env, a.env, "GOOS=linux", "GOEXPERIMENT=")
	return runCommand(build)
}

// writeSBOM writes a list of the modules in the binary.
func (b builder) writeSBOM(ctx context.Context, binary, to string) error {
	program, err := b.findTool(ctx, "cyclonedx-gomod")
	if err != nil {
		return err
	}
	return runCommand(exec.CommandContext(ctx, program, "bin", "-json", "-std", "-noserial", "-notimestamp",
		"-version", b.version.binary, "-output", to, binary))
}

// runNFPM builds a package from the files in the directory stage and writes it to dir. format is a
// format of nfpm.
func (b builder) runNFPM(ctx context.Context, format string, a arch, stage, dir string) error {
	program, err := b.findTool(ctx, "nfpm")
	if err != nil {
		return err
	}
	number := b.version.linux
	if format == "apk" {
		number = b.version.apk
	}
	nfpm := exec.CommandContext(ctx, program, "package", "--config", "files/nfpm.yaml", "--packager", format, "--target", dir+"/")
	nfpm.Dir = stage // the paths in nfpm.yaml are relative to this directory
	nfpm.Env = append(os.Environ(), "PODD_ARCH="+a.nfpm, "PODD_VERSION="+number,
		"SOURCE_DATE_EPOCH="+strconv.FormatInt(b.created.Unix(), 10))
	return runCommand(nfpm)
}

// findTool returns the path of a tool of the module in cmd/package/tools. Go builds the tool if
// its cache does not contain it.
func (b builder) findTool(ctx context.Context, name string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "tool", "-modfile=cmd/package/tools/go.mod", "-n", name)
	cmd.Dir = b.root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS="+release.Flags())
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("building the tool %s: %w: %s", name, err, stderr.Bytes())
	}
	return strings.TrimSpace(string(out)), nil
}

// runCommand runs a command. If it fails, the error contains its output.
func runCommand(cmd *exec.Cmd) error {
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", cmd, err, out)
	}
	return nil
}

func copyFile(from, to string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, content, 0o644)
}
