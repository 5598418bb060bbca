package pull_test

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"podd/reconcile/pull"
)

// TestFile_Matching checks which entries of a Docker config.json apply to an image, and that the
// most specific entry comes first.
func TestFile_Matching(t *testing.T) {
	tests := []struct {
		name, keys, image, want string // keys and users, in the order of the file
	}{
		{"host", "registry.example other.example", "registry.example/web:1", "registry.example"},
		{"host and port", "registry.example registry.example:5000", "registry.example:5000/web", "registry.example:5000"},
		{"port required", "registry.example:5000", "registry.example/web", ""},
		{"path", "registry.example registry.example/team registry.example/team/web", "registry.example/team/web:1", "registry.example/team/web registry.example/team registry.example"},
		{"incomplete path element", "registry.example/te", "registry.example/team/web", ""},
		{"deeper path", "registry.example/team/web/deep", "registry.example/team/web", ""},
		{"scheme", "https://registry.example", "registry.example/web", "https://registry.example"},
		{"plain scheme", "http://registry.example/", "registry.example/web", "http://registry.example/"},
		{"api version", "https://registry.example/v2/", "registry.example/web", "https://registry.example/v2/"},
		{"wildcard", "*.example", "registry.example/web", "*.example"},
		{"a wildcard is one label", "*.example", "a.registry.example/web", ""},
		{"wildcard in the middle", "a.*.example", "a.b.example/web", "a.*.example"},
		{"wildcard with port", "*.example:5000", "registry.example:5000/web", "*.example:5000"},
		{"wildcard without the port", "*.example", "registry.example:5000/web", ""},
		{"wildcard and path", "*.example/team", "registry.example/team/web", "*.example/team"},
		{"wildcard after the host", "*.example registry.example", "registry.example/web", "registry.example *.example"},
		{"scheme is no part of it", "https://registry.example/v1/ registry.example/team", "registry.example/team/web", "registry.example/team https://registry.example/v1/"},
		{"broken pattern", "[.example", "registry.example/web", ""},
		{"docker hub", "https://index.docker.io/v1/", "nginx", "https://index.docker.io/v1/"},
		{"docker hub by name", "docker.io", "docker.io/library/nginx@sha256:00", "docker.io"},
		{"docker hub's library", "docker.io/library", "docker.io/nginx:1", "docker.io/library"},
		{"docker hub's user", "index.docker.io/me", "me/web", "index.docker.io/me"},
		{"docker hub's server", "registry-1.docker.io", "nginx:1", "registry-1.docker.io"},
		{"not docker hub", "registry.example", "nginx", ""},
		{"localhost", "localhost:5000", "localhost:5000/web:1", "localhost:5000"},
		{"address", "127.0.0.1:5000", "127.0.0.1:5000/web:1", "127.0.0.1:5000"},
		{"localhost without port", "localhost", "localhost/web", "localhost"},
		{"address of version 6", "[::1]:5000", "[::1]:5000/web", "[::1]:5000"},
		{"digest with port", "registry.example:5000", "registry.example:5000/web@sha256:abc", "registry.example:5000"},
		{"capitals", "Registry.Example", "registry.example/web", "Registry.Example"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var auths []string
			for _, key := range strings.Fields(test.keys) {
				auths = append(auths, `"`+key+`": {"username": "`+key+`", "password": "p"}`)
			}
			found, err := pull.CredentialFiles{{Path: write(t, `{"auths": {`+strings.Join(auths, ",")+`}}`)}}.Credentials(test.image)
			if err != nil {
				t.Fatal(err)
			}
			var users []string
			for _, a := range found {
				users = append(users, a.Username)
			}
			if got := strings.Join(users, " "); got != test.want {
				t.Errorf("%s: got %q, want %q", test.image, got, test.want)
			}
		})
	}
}

func write(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "config.json")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// TestFile_Entries checks the forms of an entry.
func TestFile_Entries(t *testing.T) {
	padded := base64.StdEncoding.EncodeToString([]byte("me:pass:word"))
	raw := strings.TrimRight(base64.StdEncoding.EncodeToString([]byte("me:pass:word!")), "=")
	tests := map[string]struct{ entry, user, password, token string }{
		"auth":              {`"auth": "` + padded + `"`, "me", "pass:word", ""},
		"auth, no padding":  {`"auth": "` + raw + `"`, "me", "pass:word!", ""},
		"auth, zero byte":   {`"auth": "` + base64.StdEncoding.EncodeToString([]byte("me:word\x00")) + `"`, "me", "word", ""},
		"user and password": {`"username": "me", "password": "word"`, "me", "word", ""},
		"auth wins":         {`"auth": "` + padded + `", "username": "x", "password": "y"`, "me", "pass:word", ""},
		"identity token":    {`"auth": "` + base64.StdEncoding.EncodeToString([]byte("me:")) + `", "identitytoken": "tok"`, "", "", "tok"},
		"unknown fields":    {`"email": "a@b", "username": "me", "password": "word"`, "me", "word", ""},
		"broken auth":       {`"auth": "%%%"`, "", "", ""},
		"auth, no colon":    {`"auth": "` + base64.StdEncoding.EncodeToString([]byte("nocolon")) + `"`, "", "", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			found, err := pull.CredentialFiles{{Path: write(t, `{"auths": {"registry.example": {`+test.entry+`}}, "credsStore": "desktop"}`)}}.Credentials("registry.example/web")
			if err != nil || len(found) != 1 {
				t.Fatalf("credentials: got %v (error %v), want one", found, err)
			}
			a := found[0]
			if a.Username != test.user || a.Password != test.password || a.IdentityToken != test.token || a.ServerAddress != "" {
				t.Errorf("credentials: got %v, want user %q, password %q, token %q and no server address", a, test.user, test.password, test.token)
			}
		})
	}
}

// TestFile_Invalid checks that the error for an invalid config.json does not quote it.
func TestFile_Invalid(t *testing.T) {
	if found, err := pull.NewCredentialFiles(t.TempDir(), "", "")[:1].Credentials("web"); err != nil || found != nil {
		t.Errorf("missing file: got %v (error %v), want none", found, err)
	}
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, file := range map[string]string{
		"garbage":    write(t, `{"auths": {"registry.example": {"password": s3cret}}}`),
		"wrong type": write(t, `{"auths": {"registry.example": {"password": 1, "auth": "s3cret"}}}`),
		"empty":      write(t, ""),
		"too big":    write(t, `{"auths": {}}`+strings.Repeat(" ", 2<<20)),
		"a pipe":     pipe,
		"a dir":      t.TempDir(),
	} {
		_, err := pull.CredentialFiles{{Path: file}}.Credentials("registry.example/web")
		if err == nil || strings.Contains(err.Error(), "s3cret") || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: got error %v, want one that names the file without its content", name, err)
		}
	}
}
