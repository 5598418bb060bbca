package collect

import (
	"bytes"
	"context"
	"errors"
	"io/fs"

	"k8s.io/apimachinery/pkg/types"

	"podd/runtime/logs"
)

// The limits of a termination message from a container's log, as in the kubelet.
const (
	maxLastLines      = 80
	maxLastLinesBytes = 2048
)

// LastLines returns the last 80 lines, but at most 2048 bytes, of the log of an attempt whose
// container has exited. It waits until the runtime has written the whole log. It returns "" if the
// log is empty or does not exist.
func (l LogsAndCgroups) LastLines(ctx context.Context, key types.NamespacedName, uid types.UID, container string, attempt uint32) (string, error) {
	var text []byte
	hasExited := make(chan struct{})
	close(hasExited)
	err := logs.Read(ctx, logs.Options{
		Dir:       logs.Dir(l.Logs.Dir, key, uid),
		Container: container, Attempt: &attempt, TailLines: maxLastLines,
		Follow: true, HasExited: logs.ExitedWhenClosed(hasExited),
	}, func(e logs.Entry) error {
		text = append(text, e.Text...)
		if !e.Partial {
			text = append(text, '\n')
		}
		text = text[max(len(text)-maxLastLinesBytes, 0):]
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return string(tail(text)), err
}

// tail returns the last lines of text, at most maxLastLines.
func tail(text []byte) []byte {
	start := len(bytes.TrimSuffix(text, []byte("\n")))
	for range maxLastLines {
		if start = bytes.LastIndexByte(text[:start], '\n'); start < 0 {
			return text
		}
	}
	return text[start+1:]
}
