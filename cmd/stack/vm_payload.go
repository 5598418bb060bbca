package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"podd/cmd/internal/release"
	"podd/runtime/runtimetest/stack/tools"
)

// payloadMountPoint is the mount point of the payload in the machine.
const payloadMountPoint = "/payload"

// payloadSize is the maximum size of the payload. The image of the payload is a sparse file.
const payloadSize = "3G"

// makePayload creates a disk image with everything that runs in the machine: podd, the test
// binaries, two runtimes, packages and, if withNodeSuite is true, Kubernetes' tests of a kubelet.
func makePayload(ctx context.Context, version, dir, image string, withNodeSuite bool) error {
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o755)); err != nil {
		return err
	}
	for _, build := range []*exec.Cmd{
		release.Command(ctx, "", filepath.Join(dir, "podd"), "-X main.version="+version),
		buildTests(ctx, filepath.Join(dir, "e2e.test"), "./cmd/podd/e2e"),
		buildTests(ctx, filepath.Join(dir, "machine.test"), "./cmd/podd/e2e/machine"),
	} {
		if out, err := build.CombinedOutput(); err != nil {
			return fmt.Errorf("building podd and its tests for the virtual machine: %w: %s", err, out)
		}
	}
	p := packer{dir: dir, copiedDirs: map[string]string{}}
	for _, flavor := range []tools.Flavor{tools.Pinned, tools.Debian} {
		if err := p.copyRuntime(ctx, flavor); err != nil {
			return fmt.Errorf("copying the runtime %s for the virtual machine: %w", flavor, err)
		}
	}
	if err := copyPackages(ctx, dir); err != nil {
		return fmt.Errorf("copying the packages for the virtual machine: %w", err)
	}
	if withNodeSuite {
		if err := addNodeSuite(ctx, dir); err != nil {
			return fmt.Errorf("copying Kubernetes' tests of a kubelet for the virtual machine: %w", err)
		}
	}
	if err := tools.MakeImage(ctx, "payload", dir, image, payloadSize); err != nil {
		return err
	}
	return os.RemoveAll(dir)
}

// buildTests returns a command that builds the end-to-end tests in pkg and writes the test binary
// to file.
func buildTests(ctx context.Context, file, pkg string) *exec.Cmd {
	build := exec.CommandContext(ctx, "go", "test", "-c", "-tags", "e2e", "-ldflags", "-s -w", "-o", file, pkg)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	return build
}

// copyPackages builds two versions of podd's .deb package, and copies a repository with the packages
// on which it depends.
func copyPackages(ctx context.Context, dir string) error {
	for _, version := range []string{"1.0.0", "1.0.1"} {
		build := exec.CommandContext(ctx, "go", "run", "./cmd/package", "--version", version, "--arch", "amd64", "--format", "deb",
			"--out", filepath.Join(dir, "package-"+version))
		if out, err := build.CombinedOutput(); err != nil {
			return fmt.Errorf("building version %s: %w: %s", version, err, out)
		}
	}
	repository, err := tools.EnsureRepository(ctx, slog.Default())
	if err != nil {
		return err
	}
	return os.CopyFS(filepath.Join(dir, "repository"), os.DirFS(repository))
}

// addNodeSuite adds Kubernetes' tests of a kubelet to the payload in dir, with the programs and images
// that they need. There, podd has the name kubelet.
func addNodeSuite(ctx context.Context, dir string) error {
	suite, err := tools.EnsureNodeSuite(ctx, slog.Default())
	if err != nil {
		return err
	}
	to := filepath.Join(dir, nodeSuiteDir)
	if err := os.Mkdir(to, 0o755); err != nil {
		return err
	}
	for _, file := range []*string{&suite.Ginkgo, &suite.Images, &suite.Program, &suite.DevicePlugin} {
		name := filepath.Base(*file)
		if err := tools.CopyFile(*file, filepath.Join(to, name)); err != nil {
			return err
		}
		*file = filepath.Join(payloadMountPoint, nodeSuiteDir, name)
	}
	suite.Suite = "" // the program of another suite
	data, err := json.MarshalIndent(suite, "", "\t")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(to, "tools.json"), data, 0o644); err != nil {
		return err
	}
	for name, target := range map[string]string{"kubelet": "../podd", "sudo": "../" + nodeSuiteTests} {
		if err := os.Symlink(target, filepath.Join(to, name)); err != nil {
			return err
		}
	}
	for _, build := range []*exec.Cmd{
		buildTests(ctx, filepath.Join(dir, nodeSuiteTests), "./cmd/podd/e2e/nodesuite"),
		exec.CommandContext(ctx, "go", "build", "-o", to, "./cmd/podd/e2e/nodesuite/nmeter", "./cmd/podd/e2e/nodesuite/perl"),
	} {
		if out, err := build.CombinedOutput(); err != nil {
			return fmt.Errorf("building programs: %w: %s", err, out)
		}
	}
	return nil
}

// A packer copies directories to the payload, each directory once.
type packer struct {
	dir        string
	copiedDirs map[string]string // paths in the machine, by path on the host
}

// copyRuntime copies the programs and images of a runtime. It writes their paths in the machine to
// a JSON file, whose path is the value of the environment variable tools.ToolSetFileEnv.
func (p packer) copyRuntime(ctx context.Context, flavor tools.Flavor) error {
	set, err := tools.Ensure(ctx, tools.Options{Flavor: flavor, Log: slog.Default()})
	if err != nil {
		return err
	}
	for _, file := range []*string{&set.Containerd, &set.Ctr, &set.Runc, &set.Images} {
		in, err := p.copyDir(filepath.Dir(*file))
		if err != nil {
			return err
		}
		*file = filepath.Join(in, filepath.Base(*file))
	}
	if set.CNI, err = p.copyDir(set.CNI); err != nil {
		return err
	}
	data, err := json.MarshalIndent(set, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(p.dir, string(flavor)+".json"), data, 0o644)
}

// copyDir copies a directory, unless it was already copied, and returns its path in the machine.
func (p packer) copyDir(sourceDir string) (string, error) {
	if in, ok := p.copiedDirs[sourceDir]; ok {
		return in, nil
	}
	name := "programs-" + strconv.Itoa(len(p.copiedDirs))
	p.copiedDirs[sourceDir] = filepath.Join(payloadMountPoint, name)
	return p.copiedDirs[sourceDir], os.CopyFS(filepath.Join(p.dir, name), os.DirFS(sourceDir))
}
