package main

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// root is the root of the repository.
const root = "../.."

// TestPackages checks that two builds of the same packages are equal, and that the packages contain
// the expected files with the time of the commit. The packages contain this program instead of podd,
// because compressing podd eight times takes most of a minute. "make nightly" builds the packages of podd
// for all architectures twice, and compares them.
func TestPackages(t *testing.T) {
	created := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	v, err := parseVersion("v1.2.3-rc.1", created)
	if err != nil {
		t.Fatal(err)
	}
	b := builder{root: root, version: v, created: created, archs: []string{"amd64"}, formats: []string{"deb", "rpm", "apk", "tar.gz"}, binary: filepath.Join(t.TempDir(), "package")}
	if err := runCommand(exec.CommandContext(t.Context(), "go", "build", "-ldflags=-s -w", "-o", b.binary, ".")); err != nil {
		t.Fatal(err)
	}
	dirs := []string{filepath.Join(t.TempDir(), "a"), filepath.Join(t.TempDir(), "b")}
	for _, dir := range dirs {
		// buildAll collects the files of a package in TMPDIR. Each build gets another TMPDIR, because
		// the path of this directory must not affect the package.
		t.Setenv("TMPDIR", t.TempDir())
		if err := b.buildAll(t.Context(), dir); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := compareDirs(dirs[0], dirs[1]); err != nil {
		t.Error(err)
	}
	sums, err := os.ReadFile(filepath.Join(dirs[0], "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		"podd_1.2.3~rc1_amd64.deb",
		"podd-1.2.3~rc1-1.x86_64.rpm",
		"podd_1.2.3_rc1_x86_64.apk",
		"podd_1.2.3~rc1_linux_amd64.tar.gz",
		"podd_1.2.3~rc1_linux_amd64.cdx.json",
	} {
		if !strings.Contains(string(sums), "  "+name+"\n") {
			t.Errorf("SHA256SUMS: got\n%swant a line for %q", sums, name)
		}
	}
	// The files in .apk and .tar.gz packages must have the time of the commit, because the times of
	// the files in a checkout differ.
	for name, wants := range map[string][]string{
		"podd_1.2.3_rc1_x86_64.apk": {
			"etc/init.d/podd", "etc/podd/config.yaml", "etc/podd/manifests/", "usr/bin/podd", "usr/share/man/man1/podd-run.1.gz",
			"usr/share/bash-completion/completions/podd", "usr/share/doc/podd/sbom.cdx.json",
		},
		"podd_1.2.3~rc1_linux_amd64.tar.gz": {
			"podd_1.2.3~rc1_linux_amd64/podd", "podd_1.2.3~rc1_linux_amd64/podd.service", "podd_1.2.3~rc1_linux_amd64/man/podd.1.gz",
		},
	} {
		times := readTimes(t, filepath.Join(dirs[0], name))
		for _, want := range wants {
			if _, ok := times[want]; !ok {
				t.Errorf("%s: got no file %q, want one", name, want)
			}
		}
		for file, got := range times {
			if file != ".PKGINFO" && !got.Equal(created) {
				t.Errorf("%s: %s: got time %s, want %s", name, file, got.UTC(), created)
			}
		}
	}
}

// readTimes returns the modification times of the files in a .tar.gz or .apk file, by name. A .apk file is a
// sequence of .tar.gz files.
func readTimes(t *testing.T, file string) map[string]time.Time {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	times := map[string]time.Time{}
	in := bufio.NewReader(bytes.NewReader(data))
	for {
		if _, err := in.Peek(1); errors.Is(err, io.EOF) {
			return times
		}
		z, err := gzip.NewReader(in)
		if err != nil {
			t.Fatal(err)
		}
		z.Multistream(false)
		files := tar.NewReader(z)
		for {
			h, err := files.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			times[h.Name] = h.ModTime
		}
		if _, err := io.Copy(io.Discard, z); err != nil {
			t.Fatal(err)
		}
	}
}

// TestCompareDirs checks that compareDirs returns an error if a file of the second directory is
// missing, additional or different.
func TestCompareDirs(t *testing.T) {
	write := func(files map[string]string) string {
		dir := t.TempDir()
		for name, content := range files {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return dir
	}
	first := write(map[string]string{"a": "1", "b": "2"})
	if n, err := compareDirs(first, write(map[string]string{"a": "1", "b": "2"})); n != 2 || err != nil {
		t.Errorf("equal directories: got %d files, error %v; want 2 files and no error", n, err)
	}
	for _, second := range []map[string]string{{"a": "1"}, {"a": "1", "b": "2", "c": "3"}, {"a": "1", "b": "3"}} {
		if _, err := compareDirs(first, write(second)); !errors.Is(err, errDifferent) {
			t.Errorf("second directory with %v: got error %v, want errDifferent", second, err)
		}
	}
}

// TestRemoveEarlier checks that removeEarlier removes the packages of an earlier build, but removes
// nothing if the directory also contains another file.
func TestRemoveEarlier(t *testing.T) {
	dir := t.TempDir()
	write := func(name string) {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("podd_1.0.0_amd64.deb")
	write(checksumsFile)
	write("thesis.txt")
	if err := removeEarlier(dir); err == nil {
		t.Error("directory with packages and thesis.txt: got no error, want one")
	}
	if files, err := readFiles(dir); err != nil || len(files) != 3 {
		t.Errorf("after the error: got %d files, error %v; want all 3 files", len(files), err)
	}
	if err := os.Remove(filepath.Join(dir, "thesis.txt")); err != nil {
		t.Fatal(err)
	}
	if err := removeEarlier(dir); err != nil {
		t.Error(err)
	}
	if files, err := readFiles(dir); err != nil || len(files) != 0 {
		t.Errorf("directory with only packages: got %d files, error %v; want no files", len(files), err)
	}
	if err := removeEarlier(filepath.Join(dir, "none")); err != nil {
		t.Errorf("missing directory: got error %v, want none", err)
	}
}

// TestScripts checks that each script has no syntax error. The scripts for deb and apk must start
// with #!/bin/sh; the scripts for rpm must not, because rpm chooses their interpreter.
func TestScripts(t *testing.T) {
	scripts, err := filepath.Glob("files/*-*")
	if err != nil || len(scripts) < 9 {
		t.Fatalf("got scripts %v, error %v; want at least 9 scripts", scripts, err)
	}
	for _, script := range scripts {
		text, err := os.ReadFile(script)
		if err != nil {
			t.Fatal(err)
		}
		isRPM := strings.HasPrefix(filepath.Base(script), "rpm-")
		if hasInterpreter := strings.HasPrefix(string(text), "#!/bin/sh\n"); hasInterpreter == isRPM {
			t.Errorf("%s: starts with #!/bin/sh: got %v, want %v", script, hasInterpreter, !isRPM)
		}
		if out, err := exec.Command("sh", "-n", script).CombinedOutput(); err != nil {
			t.Errorf("sh -n %s: got %v, want no error; output:\n%s", script, err, out)
		}
	}
}
