package filename

import "testing"

func TestClassify(t *testing.T) {
	for name, want := range map[string]Kind{
		"a.yaml": Manifest, "a.yml": Manifest, "a.json": Manifest, "a.manifest": Manifest, "a.b.yaml": Manifest,
		"4913.yaml": Manifest, "\xff.yaml": Manifest,
		".a.yaml": Hidden, ".yaml": Hidden, ".git": Hidden, ".a.yaml.swp": Hidden, ".#a.yaml": Hidden,
		"..data": VolumeLink, "..2026_11_21": VolumeLink,
		"a.yaml~": Backup, "#a.yaml#": Backup, "4913": Backup, "a.yaml.bak": Backup,
		"a.yaml.rpmsave": Backup, "a.yaml.dpkg-old": Backup, "a.yaml.orig": Backup,
		"a": Other, "README.md": Other, "a.YAML": Other, "yaml": Other, "a.yaml.txt": Other,
	} {
		got := Classify(name)
		if got != want {
			t.Errorf("Classify(%q): got %d, want %d", name, got, want)
		}
		if reason := got.IgnoredReason(); (reason == "") != (got == Manifest) {
			t.Errorf("IgnoredReason of %q: got %q, want a reason unless the file is read", name, reason)
		}
	}
}
