package collect

import (
	"fmt"
	"os"
	"path/filepath"

	"podd/manifest"
	"podd/runtime/logs"
	"podd/runtime/safepath"
)

// logDirMode is the mode of log directories, as in the kubelet. Log agents that do not run as
// root can read these directories.
const logDirMode = 0o755

// MakeLogDirs creates the log directory of a pod and, unless container is "", the log directory of
// the container below it. MakeLogDirs does not change existing directories.
//
// According to the CRI, the node agent creates these directories. containerd creates missing
// directories. CRI-O fails to create a container if the container's directory is missing, and
// creates the pod's directory with a mode that only root can read.
func (l LogsAndCgroups) MakeLogDirs(pod *manifest.Pod, container string) error {
	if err := l.makeLogDirs(logs.DirName(pod.Key, pod.UID), container); err != nil {
		return fmt.Errorf("creating the log directory: %w", err)
	}
	return nil
}

// makeLogDirs implements MakeLogDirs. pod is the name of the pod's log directory in l.Logs.Dir.
func (l LogsAndCgroups) makeLogDirs(pod, container string) error {
	if err := os.MkdirAll(l.Logs.Dir, logDirMode); err != nil {
		return err
	}
	rootDir, err := safepath.Open(l.Logs.Dir)
	if err != nil {
		return err
	}
	defer rootDir.Close()
	if _, err := rootDir.Mkdir(pod, logDirMode, -1); err != nil || container == "" {
		return err
	}
	if !isContainerName(container) {
		return fmt.Errorf("%q is not a valid container name", container)
	}
	_, err = rootDir.Mkdir(filepath.Join(pod, container), logDirMode, -1)
	return err
}
