package effect

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"podd/reconcile/render"
)

const (
	nodeHostsPath = "/etc/hosts"
	// maxHostsFileBytes is the maximum number of bytes that are read from the node's hosts file. It is
	// large because some nodes use a long hosts file to block advertisements.
	maxHostsFileBytes = 16 << 20
)

// writeHosts writes the file that is mounted as /etc/hosts in the pod's containers, and returns its
// path. path is "" if the pod gets no hosts file (see render.HostsFile).
func (e *Runner) writeHosts(s Input, ips []string) (path string, err error) {
	node := ""
	if s.Desired.Object.Spec.HostNetwork {
		if node, err = readNodeHosts(); err != nil {
			return "", fmt.Errorf("reading the node's hosts file: %w", err)
		}
	}
	text := render.HostsFile(s.Desired, *s.Node, ips, node)
	if text == "" {
		return "", nil
	}
	path, err = e.Disk.WriteHosts(s.Desired.UID, text)
	if err != nil {
		return "", fmt.Errorf("writing the hosts file of pod %s: %w", s.Key, err)
	}
	return path, nil
}

// readNodeHosts returns the content of the node's hosts file, or "" if the file does not exist.
func readNodeHosts() (string, error) {
	f, err := os.Open(nodeHostsPath)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxHostsFileBytes))
	return string(text), err
}
