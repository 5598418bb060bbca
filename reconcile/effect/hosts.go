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
	// maxHosts bounds the bytes that are read of the node's file, because some nodes block
	// advertisements with a long one.
	maxHosts = 16 << 20
)

// writeHosts writes the file that is /etc/hosts in the pod's containers, and returns its
// path. It returns "" for a pod without an address, see render.HostsFile.
func (e *Runner) writeHosts(s Input, ips []string) (string, error) {
	node := ""
	if s.Desired.Spec.Spec.HostNetwork {
		var err error
		if node, err = readNodeHosts(); err != nil {
			return "", fmt.Errorf("reading the node's hosts file: %w", err)
		}
	}
	text := render.HostsFile(s.Desired, *s.Node, ips, node)
	if text == "" {
		return "", nil
	}
	path, err := e.Disk.WriteHosts(s.Desired.UID, text)
	if err != nil {
		return "", fmt.Errorf("writing the hosts file of pod %s: %w", s.Key, err)
	}
	return path, nil
}

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
