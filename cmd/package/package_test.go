package main

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
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
	checkDeb(t, filepath.Join(dirs[0], "podd_1.2.3~rc1_amd64.deb"))
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

// checkDeb checks the files, owners, modes and configuration files of a .deb package.
func checkDeb(t *testing.T, file string) {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]fs.FileMode{
		"./etc/podd/config.yaml": 0o600, "./etc/podd/manifests/": 0o700, "./usr/bin/podd": 0o755,
		"./usr/lib/systemd/system/podd.service": 0o644, "./usr/share/doc/podd/sbom.cdx.json": 0o644, "./usr/share/podd/podd.conflist": 0o644,
		"./usr/share/bash-completion/completions/podd": 0o644, "./usr/share/fish/vendor_completions.d/podd.fish": 0o644, "./usr/share/zsh/vendor-completions/_podd": 0o644,
	}
	pages, err := filepath.Glob(filepath.Join(root, manDir, "*.1"))
	if err != nil || len(pages) == 0 {
		t.Fatalf("got man pages %v, error %v; want at least one", pages, err)
	}
	for _, page := range pages {
		want["./usr/share/man/man1/"+filepath.Base(page)+".gz"] = 0o644
	}
	got := map[string]fs.FileMode{}
	readDebMember(t, content, "data.tar.gz", func(h *tar.Header, _ io.Reader) {
		if h.Uid != 0 || h.Gid != 0 || h.Uname != "root" || h.Gname != "root" {
			t.Errorf("%s: got owner %d:%d (%s:%s), want root:root", h.Name, h.Uid, h.Gid, h.Uname, h.Gname)
		}
		if _, isWanted := want[h.Name]; isWanted || h.Typeflag != tar.TypeDir {
			got[h.Name] = h.FileInfo().Mode() &^ fs.ModeDir
		} else if h.Mode != 0o755 {
			t.Errorf("%s: got mode %o, want 755, because other packages share this directory", h.Name, h.Mode)
		}
	})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files of the .deb package and their modes (-want +got):\n%s", diff)
	}
	control := map[string]string{}
	readDebMember(t, content, "control.tar.gz", func(h *tar.Header, r io.Reader) {
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		control[strings.TrimPrefix(h.Name, "./")] = string(text)
	})
	if conffiles := control["conffiles"]; conffiles != "/etc/podd/config.yaml\n" {
		t.Errorf("conffiles: got %q, want only /etc/podd/config.yaml", conffiles)
	}
	for _, script := range []string{"postinst", "prerm", "postrm"} {
		if text, err := os.ReadFile("files/deb-" + script); err != nil || control[script] != string(text) {
			t.Errorf("%s: got\n%s\nwant\n%s (error %v)", script, control[script], text, err)
		}
	}
}

// readDebMember calls visit for each entry of a tar.gz file in a .deb package. A .deb package is an ar
// archive, in which a header of 60 bytes precedes each file.
func readDebMember(t *testing.T, deb []byte, name string, visit func(*tar.Header, io.Reader)) {
	t.Helper()
	const magic, headerSize = "!<arch>\n", 60
	rest, ok := bytes.CutPrefix(deb, []byte(magic))
	for ok && len(rest) >= headerSize {
		header := string(rest[:headerSize])
		size, err := strconv.Atoi(strings.TrimSpace(header[48:58]))
		if err != nil {
			t.Fatalf("header %q of the .deb package: %v", header, err)
		}
		if strings.TrimRight(header[:16], " /") == name {
			z, err := gzip.NewReader(bytes.NewReader(rest[headerSize : headerSize+size]))
			if err != nil {
				t.Fatal(err)
			}
			files := tar.NewReader(z)
			for {
				h, err := files.Next()
				if errors.Is(err, io.EOF) {
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				visit(h, files)
			}
		}
		rest = rest[headerSize+size+size%2:]
	}
	t.Fatalf("got no file %s in the .deb package, want one", name)
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

// TestService checks the settings of podd's systemd unit on which its pods depend.
func TestService(t *testing.T) {
	text, err := os.ReadFile("files/podd.service")
	if err != nil {
		t.Fatal(err)
	}
	for setting, effect := range map[string]string{
		"[Unit]: StartLimitIntervalSec=0": "systemd starts podd again even if it has failed five times in ten seconds",
		"[Service]: Type=notify":          "the service has started when podd is ready",
		"[Service]: WatchdogSec=20s":      "systemd restarts a podd that hangs",
		"[Service]: Restart=always":       "systemd starts podd again after a failure",
		"[Service]: KillMode=process":     "the processes that podd has started for pods survive it",
		"[Service]: OOMScoreAdjust=-999":  "the kernel kills pods before podd if memory is scarce",
	} {
		section, line, _ := strings.Cut(setting, ": ")
		_, lines, _ := strings.Cut(string(text), section+"\n")
		lines, _, _ = strings.Cut(lines, "\n[")
		if !slices.Contains(strings.Split(lines, "\n"), line) {
			t.Errorf("podd.service: got no line %q in the section %s, want one, so that %s", line, section, effect)
		}
	}
}

// TestScripts_PodsRemain checks that the removal of a package prints how to stop the pods that podd has
// left, and that a purge then keeps podd's files. A kubelet's pods in /var/lib/kubelet are not podd's.
func TestScripts_PodsRemain(t *testing.T) {
	const message = `podd down"`
	for name, c := range map[string]struct {
		files   []string // relative to /var/lib
		running string   // a process that runs
		want    bool     // whether podd has left pods
	}{
		"pods":                              {[]string{"podd/instance", "podd/pods/1/journal.json"}, "", true},
		"pods next to a kubelet":            {[]string{"podd/instance", "podd/pods/1/journal.json"}, "kubelet", true},
		"no pods":                           {[]string{"podd/instance", "podd/claims/c/data"}, "", false},
		"pods in a cluster":                 {[]string{"podd/instance", "kubelet/instance", "kubelet/pods/1/journal.json"}, "", true},
		"pods of a kubelet":                 {[]string{"podd/instance", "kubelet/pods/1/etc-hosts"}, "", false},
		"pods of a kubelet after migration": {[]string{"podd/instance", "kubelet/instance", "kubelet/pods/1/etc-hosts"}, "kubelet", false},
		"no pods, podd in a cluster":        {[]string{"kubelet/instance"}, "", false},
	} {
		for script, args := range map[string]string{"deb-prerm": "remove", "deb-postrm": "purge", "rpm-preun": "0", "apk-pre-deinstall": ""} {
			root := t.TempDir()
			network := filepath.Join(root, "etc/cni/net.d/99-podd.conflist")
			files := []string{network}
			for _, file := range c.files {
				files = append(files, filepath.Join(root, "var/lib", file))
			}
			for _, file := range files {
				if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, nil, 0o600)); err != nil {
					t.Fatal(err)
				}
			}
			out := runScript(t, script, root, args, c.running)
			if got := strings.Contains(out, message); got != c.want {
				t.Errorf("%s: %s %s: got output %q, which contains %s: %v, want %v", name, script, args, out, message, got, c.want)
			}
			if script != "deb-postrm" {
				continue
			}
			_, networkErr := os.Stat(network)
			_, instanceErr := os.Stat(filepath.Join(root, "var/lib/podd/instance"))
			if c.want && networkErr != nil || !c.want && (networkErr == nil || instanceErr == nil) {
				t.Errorf("%s: purge: got error %v for the network and %v for the root directory, want them kept: %v", name, networkErr, instanceErr, c.want)
			}
			if strings.HasPrefix(c.files[len(c.files)-1], "kubelet/") || strings.Contains(c.files[len(c.files)-1], "claims") {
				if _, err := os.Stat(files[len(files)-1]); err != nil {
					t.Errorf("%s: purge: got error %v for %s, want the file kept", name, err, files[len(files)-1])
				}
			}
		}
	}
}

// runScript runs a script of a package and returns its output. The script uses files below root instead
// of those of this host, and does not call its service manager. For the script, the only process of the
// host is running, the name of a program, or none if running is "".
func runScript(t *testing.T, script, root, args, running string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("files", script))
	if err != nil {
		t.Fatal(err)
	}
	replaced := strings.NewReplacer("/var/lib/", root+"/var/lib/", "/etc/cni/", root+"/etc/cni/", "/run/systemd/", root+"/run/systemd/",
		"deb-systemd-helper", "true", "rc-service", "true").Replace(string(text))
	out, err := exec.Command("sh", "-c", fmt.Sprintf("pidof() { [ \"$1\" = %q ]; }\n", running)+replaced, script, args).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: got error %v, want none; output:\n%s", script, args, err, out)
	}
	return string(out)
}
