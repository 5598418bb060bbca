package volume

import (
	"errors"
	"io"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"podd/runtime/beneath"
)

const (
	fileMode = 0o644
	// newFile ends the name of a file that is not complete.
	newFile = ".new"
)

// WriteFile puts a file into the directory of a pod, whole or not at all, and
// returns its path on the host. One that holds the text already is left as it
// is: containers may have it mounted. It may be called concurrently for one pod
// with one text. name is podd's own.
func (d Dir) WriteFile(uid types.UID, name, text string) (string, error) {
	if err := checkUID(uid); err != nil {
		return "", err
	}
	dir, err := d.make(uid)
	if err != nil {
		return "", err
	}
	defer dir.Close()
	if err := flock(dir); err != nil {
		return "", err
	}
	path := filepath.Join(d.Root, string(uid), name)
	if holdsText(dir, name, text) {
		return path, nil
	}
	if err := dir.Remove(name + newFile); err != nil {
		return "", err
	}
	f, err := dir.Create(name+newFile, fileMode)
	if err != nil {
		return "", err
	}
	_, err = io.WriteString(f, text)
	if err = errors.Join(err, f.Close()); err != nil {
		return "", err
	}
	return path, dir.Rename(name+newFile, name)
}

func holdsText(dir *beneath.Dir, name, text string) bool {
	f, err := dir.File(name)
	if err != nil {
		return false
	}
	defer f.Close()
	var b strings.Builder
	_, err = io.Copy(&b, io.LimitReader(f, int64(len(text))+1))
	return err == nil && b.String() == text
}
