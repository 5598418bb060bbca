package manifest

import "testing"

func TestSplitImageName(t *testing.T) {
	for name, want := range map[string][2]string{
		"busybox":                      {"docker.io", "library/busybox"},
		"busybox:1.37":                 {"docker.io", "library/busybox:1.37"},
		"team/app":                     {"docker.io", "team/app"},
		"docker.io/busybox":            {"docker.io", "library/busybox"},
		"index.docker.io/busybox":      {"docker.io", "library/busybox"},
		"registry.example/app:1":       {"registry.example", "app:1"},
		"registry.example:5000/a/b:1":  {"registry.example:5000", "a/b:1"},
		"localhost/app":                {"localhost", "app"},
		"registry.example.com/a/b/c:x": {"registry.example.com", "a/b/c:x"},
	} {
		if registry, repository := SplitImageName(name); registry != want[0] || repository != want[1] {
			t.Errorf("%s: got registry %s and repository %s, want registry %s and repository %s", name, registry, repository, want[0], want[1])
		}
	}
}
