package cli

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"podd/cmd/podd/internal/iostreams"
	"podd/cmd/podd/internal/poddtest"
)

// keyText is the private key of the credential that poddtest.Podd issues, in base64.
var keyText = base64.StdEncoding.EncodeToString([]byte("KEY"))

func TestKubeconfig(t *testing.T) {
	for _, c := range []struct {
		words   []string
		request string
		out     string
	}{
		{nil, "credential 8760h0m0s", keyText},
		{[]string{"--duration", "90m"}, "credential 1h30m0s", keyText},
		{[]string{"--revoke"}, "revoke", "all earlier credentials are revoked; connections closed: 2\n"},
	} {
		f := poddtest.Serve(t, poddtest.NewView())
		got := poddVerb(t.Context(), append([]string{"kubeconfig", "--run-dir", f.Dir}, c.words...)...)
		if got.Code != 0 || got.Err != "" || !strings.Contains(got.Out, c.out) || !slices.Equal(f.Requests, []string{c.request}) {
			t.Errorf("%q: got %+v, requests %q; want output that contains %q, and the request %q", c.words, got, f.Requests, c.out, c.request)
		}
	}
}

// TestKubeconfig_Output checks that podd kubeconfig writes a new file, which replaces an existing file
// and which other users cannot read. A user who opened the old file before it was replaced must not be
// able to read the credential through it.
func TestKubeconfig_Output(t *testing.T) {
	f := poddtest.Serve(t, poddtest.NewView())
	for name, mode := range map[string]os.FileMode{"missing": 0, "readable by others": 0o644, "private": 0o600} {
		dir := t.TempDir()
		path := filepath.Join(dir, "k")
		var old *os.File
		if mode != 0 {
			if err := os.WriteFile(path, []byte("old"), mode); err != nil {
				t.Fatal(err)
			}
			var err error
			if old, err = os.Open(path); err != nil { // another user may have the old file open
				t.Fatal(err)
			}
			defer old.Close()
		}
		got := poddVerb(t.Context(), "kubeconfig", "--run-dir", f.Dir, "--output", path, "--duration", "1h")
		want := path + ": root's credential, valid until "
		if got.Code != 0 || !strings.HasPrefix(got.Out, want) || strings.Contains(got.Out, keyText) || got.Err != "" {
			t.Errorf("%s file: got %+v, want output that begins with %q and does not contain the key", name, got, want)
		}
		info, err := os.Stat(path)
		if err != nil || info.Mode() != 0o600 {
			t.Errorf("%s file: got mode %v, error %v; want -rw-------", name, info.Mode(), err)
		}
		if text, err := os.ReadFile(path); err != nil || !strings.Contains(string(text), keyText) || strings.Contains(string(text), "old") {
			t.Errorf("%s file: got content %q, error %v; want only the new credential", name, text, err)
		}
		if old != nil {
			text := make([]byte, 16)
			if n, _ := old.ReadAt(text, 0); string(text[:n]) != "old" {
				t.Errorf("%s file, opened before: got content %q, want \"old\"", name, text[:n])
			}
		}
		if all, err := os.ReadDir(dir); err != nil || len(all) != 1 {
			t.Errorf("%s file: got the files %v in its directory, error %v; want one file", name, all, err)
		}
	}
}

// TestKubeconfig_OutputRejected checks that podd kubeconfig does not request a credential if it cannot
// replace the file.
func TestKubeconfig_OutputRejected(t *testing.T) {
	f := poddtest.Serve(t, poddtest.NewView())
	dir := t.TempDir()
	target := filepath.Join(dir, "target")
	if err := os.WriteFile(target, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		link:                              "is not a regular file",
		"/dev/null":                       "/dev/null is not a regular file; specify a new file, or a regular file to overwrite",
		dir:                               "is not a regular file",
		dir + "/":                         "is a directory; specify a file in it",
		"..":                              "..",
		filepath.Join(dir, "absent", "k"): "no such file or directory",
		filepath.Join(dir, "target", "k"): "not a directory",
	} {
		got := poddVerb(t.Context(), "kubeconfig", "--run-dir", f.Dir, "--output", path)
		if got.Code != 1 || got.Out != "" || !strings.HasPrefix(got.Err, "podd: --output: ") || !strings.Contains(got.Err, want) {
			t.Errorf("--output %s: got %+v, want an error that contains %q", path, got, want)
		}
	}
	if text, err := os.ReadFile(target); err != nil || string(text) != "old" || len(f.Requests) > 0 {
		t.Errorf("target of the link: got content %q, error %v, requests %q; want \"old\" and no requests", text, err, f.Requests)
	}
	if info, err := os.Stat("/dev/null"); err != nil || info.Mode()&os.ModeDevice == 0 {
		t.Fatalf("/dev/null: got %v, error %v; want a device", info, err)
	}
}

// TestKubeconfig_Warning checks that podd kubeconfig warns if stdout is a file that others can read.
func TestKubeconfig_Warning(t *testing.T) {
	f := poddtest.Serve(t, poddtest.NewView())
	for mode, warns := range map[os.FileMode]bool{0o644: true, 0o640: true, 0o604: true, 0o600: false, 0o622: false} {
		path := filepath.Join(t.TempDir(), "k")
		out, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		defer out.Close()
		if err := out.Chmod(mode); err != nil {
			t.Fatal(err)
		}
		var stderr bytes.Buffer
		s := iostreams.Streams{In: strings.NewReader(""), Out: out, Err: &stderr}
		if code := executeVerb(t.Context(), s, "kubeconfig", "--run-dir", f.Dir); code != 0 {
			t.Fatalf("stdout with mode %v: got exit code %d, stderr %q; want 0", mode, code, stderr.String())
		}
		want := fmt.Sprintf("podd: warning: other users can read %s (mode %04o), which now contains root's credential; "+
			"run \"podd kubeconfig --revoke\", and then \"podd kubeconfig --output FILE\"\n", path, mode)
		if !warns {
			want = ""
		}
		if text, err := os.ReadFile(path); err != nil || !strings.Contains(string(text), keyText) {
			t.Errorf("stdout with mode %v: got content %q, error %v; want the credential", mode, text, err)
		}
		if got := stderr.String(); got != want {
			t.Errorf("stdout with mode %v: got stderr %q, want %q", mode, got, want)
		}
	}
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	defer write.Close()
	var stderr bytes.Buffer
	if code := executeVerb(t.Context(), iostreams.Streams{In: strings.NewReader(""), Out: write, Err: &stderr}, "kubeconfig", "--run-dir", f.Dir); code != 0 || stderr.String() != "" {
		t.Errorf("stdout is a pipe: got exit code %d, stderr %q; want 0 and no warning", code, stderr.String())
	}
}
