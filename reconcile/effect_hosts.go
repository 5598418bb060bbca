package reconcile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"podd/reconcile/render"
)

const (
	// hostsName is the pod's hosts file in its directory, the kubelet's name.
	hostsName = "etc-hosts"
	nodeHosts = "/etc/hosts"
	// mostHosts bounds what is read of the node's: some machines block
	// advertisements with a long one.
	mostHosts = 16 << 20
)

// writeHosts makes the file that the pod's containers have as /etc/hosts; "" for
// a pod without an address, which keeps the image's.
func (e *Effects) writeHosts(s scene, ips []string) (string, error) {
	node := ""
	if s.desired.Spec.Spec.HostNetwork {
		var err error
		if node, err = readNodeHosts(); err != nil {
			return "", fmt.Errorf("reading the node's hosts file: %w", err)
		}
	}
	text := render.HostsFile(s.desired, *s.node, ips, node)
	if text == "" {
		return "", nil
	}
	path, err := e.Disk.WriteFile(s.desired.UID, hostsName, text)
	if err != nil {
		return "", fmt.Errorf("writing the hosts file of pod %s: %w", s.key, err)
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
	text, err := io.ReadAll(io.LimitReader(f, mostHosts))
	return string(text), err
}
