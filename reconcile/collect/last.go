package collect

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"path/filepath"

	"k8s.io/apimachinery/pkg/types"

	"podd/runtime/logs"
)

// What a container's log gives for a termination message.
const (
	lastLines = 80
	lastBytes = 2048
)

// LastLines is the end of what a start of a container that has ended logged, once
// the runtime has written it down; "" when it logged nothing, or the log is gone.
func (l Leftovers) LastLines(ctx context.Context, key types.NamespacedName, uid types.UID, container string, attempt uint32) (string, error) {
	var text []byte
	ended := make(chan struct{})
	close(ended)
	err := logs.Read(ctx, logs.Options{
		Dir:       filepath.Join(l.Logs.Dir, key.Namespace+"_"+key.Name+"_"+string(uid)),
		Container: container, Attempt: &attempt, Tail: lastLines,
		Follow: true, Ended: logs.Closed(ended),
	}, func(e logs.Entry) error {
		text = append(text, e.Text...)
		if !e.Partial {
			text = append(text, '\n')
		}
		text = text[max(len(text)-lastBytes, 0):]
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return string(tail(text)), err
}

// tail cuts text to its last lines.
func tail(text []byte) []byte {
	at := len(bytes.TrimSuffix(text, []byte("\n")))
	for range lastLines {
		if at = bytes.LastIndexByte(text[:at], '\n'); at < 0 {
			return text
		}
	}
	return text[at+1:]
}
