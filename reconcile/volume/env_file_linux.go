package volume

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"podd/manifest"
	"podd/reconcile/render"
	"podd/runtime/safepath"
)

// maxEnvFile is the maximum size of a file with variables, in bytes. All variables of a process
// must be smaller than 2 MiB (execve(2)).
const maxEnvFile = 1 << 20

// ReadEnvFiles reads files with variables from the emptyDir volumes of a pod. volumes contains the
// host paths of the volumes by name. A missing file has no entry in the result.
func (d Dir) ReadEnvFiles(pod *manifest.Pod, volumes map[string]string, files []render.EnvFile) (map[render.EnvFile]string, error) {
	texts := map[render.EnvFile]string{}
	for _, f := range files {
		text, err := readEnvFile(volumes[f.Volume], f.Path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading file %q of volume %q of pod %s: %w", f.Path, f.Volume, pod.Key, withoutPath(err))
		}
		texts[f] = text
	}
	return texts, nil
}

// readEnvFile reads a regular file of a volume. It follows only links within the volume, because
// containers can change the files of the volume at the same time.
func readEnvFile(volume, path string) (string, error) {
	dir, err := safepath.Open(volume)
	if err != nil {
		return "", err
	}
	defer dir.Close()
	f, err := dir.FollowFile(strings.TrimLeft(path, "/"))
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxEnvFile+1))
	if err == nil && len(text) > maxEnvFile {
		err = fmt.Errorf("the file is larger than %d bytes; write only variables to it", maxEnvFile)
	}
	return string(text), err
}
