package pull_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"podd/reconcile/pull"
)

// TestNewCredentialFiles checks that the files have the order of the kubelet.
func TestNewCredentialFiles(t *testing.T) {
	for _, test := range []struct{ workDir, home, want string }{
		{"/work", "/root", "/r/config.json /work/config.json /root/.docker/config.json /.docker/config.json /r/.dockercfg /work/.dockercfg /root/.dockercfg /.dockercfg"},
		{"", "", "/r/config.json /.docker/config.json /r/.dockercfg /.dockercfg"},
	} {
		var got []string
		for _, f := range pull.NewCredentialFiles("/r", test.workDir, test.home) {
			if f.IsLegacy != strings.HasSuffix(f.Path, "/.dockercfg") {
				t.Errorf("%s: got IsLegacy %t, want %t", f.Path, f.IsLegacy, !f.IsLegacy)
			}
			got = append(got, f.Path)
		}
		if want := strings.Fields(test.want); !slices.Equal(got, want) {
			t.Errorf("working directory %q, home directory %q:\ngot  %s\nwant %s", test.workDir, test.home, got, want)
		}
	}
}

// TestCredentialFiles_Order checks that only the first valid file is used, and that an invalid file
// is an error only if podd finds no credentials after it.
func TestCredentialFiles_Order(t *testing.T) {
	auth := func(user string) string { return `{"registry.example": {"username": "` + user + `", "password": "p"}}` }
	config := func(user string) string { return `{"auths": ` + auth(user) + `}` }
	for name, test := range map[string]struct {
		files     map[string]string // content by path
		user, err string
	}{
		"none":                            {},
		"the root directory first":        {map[string]string{"root/config.json": config("a"), "home/.docker/config.json": config("b"), "root/.dockercfg": auth("c")}, "a", ""},
		"the working directory":           {map[string]string{"work/config.json": config("a"), "home/.docker/config.json": config("b")}, "a", ""},
		"the home directory":              {map[string]string{"home/.docker/config.json": config("a"), "root/.dockercfg": auth("c")}, "a", ""},
		"a .dockercfg":                    {map[string]string{"home/.dockercfg": auth("a")}, "a", ""},
		"files are not combined":          {map[string]string{"root/config.json": `{"auths": {}}`, "home/.docker/config.json": config("b")}, "", ""},
		"invalid, then valid":             {map[string]string{"root/config.json": "{", "home/.docker/config.json": config("a")}, "a", ""},
		"invalid, then other credentials": {map[string]string{"root/config.json": "{", "home/.docker/config.json": "{}"}, "", "root/config.json: the file is not a valid Docker config.json"},
		"invalid .dockercfg":              {map[string]string{"home/.dockercfg": `{"a": 1}`}, "", "home/.dockercfg: the file is not a valid Docker .dockercfg"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for path, content := range test.files {
				path = filepath.Join(dir, path)
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			files := pull.NewCredentialFiles(filepath.Join(dir, "root"), filepath.Join(dir, "work"), filepath.Join(dir, "home"))
			files = slices.DeleteFunc(files, func(f pull.CredentialFile) bool { return !strings.HasPrefix(f.Path, dir) })
			found, err := files.Credentials("registry.example/web:1")
			user, message := "", ""
			if len(found) > 0 {
				user = found[0].Username
			}
			if err != nil {
				message = err.Error()
			}
			if user != test.user || !strings.HasSuffix(message, test.err) || (err != nil) != (test.err != "") {
				t.Errorf("got user %q and error %q; want user %q and error %q", user, message, test.user, test.err)
			}
		})
	}
}
