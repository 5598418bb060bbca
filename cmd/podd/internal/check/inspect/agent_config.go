package inspect

import (
	"errors"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
	"sigs.k8s.io/yaml"

	"podd/cmd/podd/internal/config"
)

// maxConfigSize is the maximum size of a configuration file of a kubelet in bytes.
const maxConfigSize = 1 << 20

// resolve makes the paths of s absolute and adds the defaults. It also adds the manifest path that
// the configuration file contains. name is the command name of the process, and proc is its
// directory in /proc.
func (s *agentSettings) resolve(name, proc string) {
	dir, _ := os.Readlink(filepath.Join(proc, "cwd")) // after an error dir is "", and relative paths remain relative
	absolute := func(path string) string {
		if path == "" || filepath.IsAbs(path) {
			return path
		}
		return filepath.Join(dir, path)
	}
	s.rootDir = absolute(s.rootDir)
	if s.rootDir == "" && name == "kubelet" {
		s.rootDir = config.KubeletRootDir
	}
	if s.configFile != "" {
		if path, err := readStaticPodPath(filepath.Join(proc, "root", absolute(s.configFile))); err == nil && path != "" {
			s.manifests = append(s.manifests, path)
		}
	}
	for i, path := range s.manifests {
		s.manifests[i] = absolute(path)
	}
}

// readStaticPodPath returns the path of the manifests in a KubeletConfiguration. Any program can
// have the command name of a kubelet, so the file may be of any type and size.
func readStaticPodPath(file string) (string, error) {
	f, err := os.OpenFile(file, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return "", errors.New("not a regular file")
	}
	text, err := io.ReadAll(io.LimitReader(f, maxConfigSize))
	if err != nil {
		return "", err
	}
	var c struct {
		StaticPodPath string `json:"staticPodPath"`
	}
	err = yaml.Unmarshal(text, &c)
	return c.StaticPodPath, err
}
