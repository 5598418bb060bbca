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
	nodeHosts = "/etc/hosts"
	// maxHosts is the maximum number of bytes that are read from the node's hosts file. It is
	// large because some nodes use a long hosts file to block advertisements.
	maxHosts = 16 << 20
)

// writeHosts writes the file that is mounted as /etc/hosts in the pod's containers. path is
// "" if the pod gets no file because it has no address (see render.HostsFile).
func (e *Runner) writeHosts(s Input, ips []string) (path string, err error) {
	node := ""
	if s.Desired.Spec.Spec.HostNetwork {
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

// readNodeHosts returns the content of the node's hosts file; "" if it does not exist.
func readNodeHosts() (string, error) {
	f, err := os.Open(nodeHosts)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxHosts))
	return string(text), err
}
