package node

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestContainerLabels(t *testing.T) {
	const labels = "# comment\nprocess = \"u:r:p:s0\"\ncontent=\"u:r:c:s0\"\nfile = \"u:r:f:s0\"\n"
	enabled := map[string]string{"sys/fs/selinux/enforce": "0", "etc/selinux/config": "SELINUX=enforcing\n# SELINUXTYPE=other\nSELINUXTYPE=targeted\n"}
	for name, c := range map[string]struct {
		files         map[string]string
		process, file string
	}{
		"SELinux disabled": {map[string]string{"usr/share/containers/selinux/contexts": labels}, "", ""},
		"policy":           {map[string]string{"etc/selinux/targeted/contexts/lxc_contexts": labels}, "u:r:p:s0", "u:r:f:s0"},
		"container-selinux": {map[string]string{"etc/selinux/targeted/contexts/lxc_contexts": "file=x", "usr/share/containers/selinux/contexts": labels},
			"u:r:p:s0", "u:r:f:s0"},
		"no labels": {nil, "", ""},
	} {
		root := t.TempDir()
		write := func(files map[string]string) {
			for path, text := range files {
				path = filepath.Join(root, path)
				if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
					t.Fatal(err)
				}
			}
		}
		write(c.files)
		if name != "SELinux disabled" {
			write(enabled)
		}
		if process, file := ContainerLabels(root); process != c.process || file != c.file {
			t.Errorf("%s: got process label %q and file label %q; want process label %q and file label %q", name, process, file, c.process, c.file)
		}
	}
}
