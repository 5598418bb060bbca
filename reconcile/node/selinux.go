package node

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"
)

// SELinuxEnabled reports whether the kernel of the host has an SELinux policy. root is "/", except in
// tests.
func SELinuxEnabled(root string) bool {
	_, err := os.Stat(filepath.Join(root, "sys/fs/selinux/enforce"))
	return err == nil
}

// ContainerLabels returns the labels of a container's process and of its files from the host's SELinux
// policy. It returns "" if SELinux is disabled or the policy does not contain the label. Container
// runtimes read the same files. root is "/", except in tests.
func ContainerLabels(root string) (process, file string) {
	if !SELinuxEnabled(root) {
		return "", ""
	}
	labels := readSettings(filepath.Join(root, "usr/share/containers/selinux/contexts"))
	if labels == nil {
		policy := readSettings(filepath.Join(root, "etc/selinux/config"))["SELINUXTYPE"]
		labels = readSettings(filepath.Join(root, "etc/selinux", policy, "contexts/lxc_contexts"))
	}
	return labels["process"], labels["file"]
}

// readSettings returns the values in a file with lines "name=value" or "name = "value"". It returns nil
// if the file cannot be read.
func readSettings(path string) map[string]string {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	all := map[string]string{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		line := strings.TrimSpace(lines.Text())
		if name, value, ok := strings.Cut(line, "="); ok && !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, ";") {
			all[strings.TrimSpace(name)] = strings.Trim(strings.TrimSpace(value), `"`)
		}
	}
	return all
}
