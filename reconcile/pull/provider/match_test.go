package provider

import (
	"strings"
	"testing"

	wire "k8s.io/kubelet/pkg/apis/credentialprovider/v1"
)

// TestMatches checks which images a pattern of matchImages matches in Kubernetes.
func TestMatches(t *testing.T) {
	tests := []struct {
		pattern, image string
		want           bool
	}{
		{"registry.io", "registry.io/web", true},
		{"registry.io", "registry.io", true},
		{"registry.io", "other.io/web", false},
		{"registry.io", "a.registry.io/web", false},
		{"*.registry.io", "a.registry.io/web", true},
		{"*.registry.io", "registry.io/web", false},
		{"*.registry.io", "b.a.registry.io/web", false},
		{"*.*.registry.io", "b.a.registry.io/web", true},
		{"*.io", "k8s.io/web", true},
		{"*.io", "registry.k8s.io/web", false},
		{"k8s.*", "k8s.io/web", true},
		{"k8s.*.io", "k8s.gcr.io/web", true},
		{"app*.k8s.io", "app1.k8s.io/web", true},
		{"app*.k8s.io", "db.k8s.io/web", false},
		{"[ab].k8s.io", "a.k8s.io/web", false}, // not a valid host of a URL
		{"registry.io:8080", "registry.io:8080/web", true},
		{"registry.io:8080", "registry.io/web", false},
		{"registry.io", "registry.io:8080/web", false},
		{"registry.io:*", "registry.io:8080/web", false},
		{"registry.io:8080/path", "registry.io:8080/path/web", true},
		{"registry.io/path", "registry.io/path", true},
		{"registry.io/path", "registry.io/pathological", true},
		{"registry.io/path", "registry.io/other", false},
		{"registry.io/*", "registry.io/web", false},
		{"docker.io", "docker.io/library/nginx", true},
		{"127.0.0.1:5000", "127.0.0.1:5000/web", true},
		{"localhost:5000", "localhost:5000/web", true},
		{"https://registry.io", "registry.io/web", false},
		{"regi stry.io", "registry.io/web", false},
	}
	for _, test := range tests {
		if got := matches(test.pattern, test.image); got != test.want {
			t.Errorf("matches(%q, %q) = %t, want %t", test.pattern, test.image, got, test.want)
		}
	}
}

// TestOrder checks which credentials of several plugins apply to an image, and their
// order.
func TestOrder(t *testing.T) {
	for _, test := range []struct{ name, first, second, image, want string }{
		{"the longer key first", "a.io a.io/team a.io/team/web", "", "a.io/team/web", "1:a.io/team/web 1:a.io/team 1:a.io"},
		{"globs last", "*.io a.io a.*", "", "a.io/web", "1:a.io 1:a.* 1:*.io"},
		{"one key: by plugin", "a.io", "a.io", "a.io/web", "1:a.io 2:a.io"},
		{"first by key", "a.io", "a.io/team", "a.io/team/web", "2:a.io/team 1:a.io"},
		{"no match", "b.io *.a.io a.io:5000", "", "a.io/web", ""},
		{"a scheme", "https://a.io http://a.io/team", "", "a.io/team/web", "1:http://a.io/team 1:https://a.io"},
		{"the version of the API", "https://a.io/v1/ https://a.io/v2/", "", "a.io/web", "1:https://a.io/v1/ 1:https://a.io/v2/"},
		{"docker hub", "https://index.docker.io/v1/", "", "docker.io/library/nginx", "1:https://index.docker.io/v1/"},
		{"docker hub's own name first", "index.docker.io docker.io", "", "docker.io/library/nginx", "1:docker.io"},
		{"not docker hub", "index.docker.io", "", "localhost/web", ""},
	} {
		ring := keyring{}
		ring.add(testCredentials("1", test.first), nil)
		ring.add(testCredentials("2", test.second), nil)
		var got []string
		for _, a := range ring.credentialsForRepository(test.image) {
			got = append(got, a.Auth.Username)
		}
		if got := strings.Join(got, " "); got != test.want {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
}

// testCredentials returns credentials for keys. Each user name contains the plugin and the key.
func testCredentials(plugin, keys string) credentials {
	all := credentials{}
	for _, key := range strings.Fields(keys) {
		all[key] = wire.AuthConfig{Username: plugin + ":" + key}
	}
	return all
}
