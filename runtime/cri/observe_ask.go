package cri

import (
	"context"
	"errors"
	"time"

	"podd/runtime"
)

// answer is what became of the question about one object.
type answer int

const (
	notAsked answer = iota
	notYet          // unsure since an earlier pass, and not the time to ask again
	answered
	isGone
	noAnswer
)

// ask fills in the addresses.
func (s *sandboxDraft) ask(ctx context.Context, c *Client) (err error) {
	found, known := c.answers.sandbox(s.sandbox.ID)
	if !known {
		found, err = c.askSandbox(ctx, s.sandbox.ID)
	}
	s.answer = answerOf(err)
	if s.answer == answered {
		s.sandbox.IPs, s.sandbox.Ready = found.IPs, found.Ready
	}
	return err
}

// ask fills in what only the status tells. The list knows the image better: a
// status names one of its tags.
func (c *containerDraft) ask(ctx context.Context, client *Client) (err error) {
	found, known := client.answers.container(c.container.ID)
	if !known || c.container.State != runtime.Running {
		found, err = client.askContainer(ctx, c.container.ID)
	}
	c.answer = answerOf(err)
	if c.answer == answered {
		listed := c.container
		c.container = found
		c.container.SandboxID, c.container.Image = listed.SandboxID, listed.Image
		c.container.Labels, c.container.Annotations = listed.Labels, listed.Annotations
		if found.State == runtime.Exited && found.FinishedAt.IsZero() {
			c.container.FinishedAt = time.Now().Round(0)
		}
	} else if c.answer == noAnswer {
		c.container.Message = err.Error()
	}
	return err
}

func answerOf(err error) answer {
	switch {
	case err == nil:
		return answered
	case errors.Is(err, runtime.ErrNotFound):
		return isGone
	}
	return noAnswer
}

// asked are the ids that were asked about in this pass.
func (d *draft) asked() []string {
	ids := make([]string, 0, len(d.sandboxes)+len(d.containers))
	for _, s := range d.sandboxes {
		ids = append(ids, s.sandbox.ID)
	}
	for _, c := range d.containers {
		ids = append(ids, c.container.ID)
	}
	return ids
}

// failedNow says that a question of this pass was not answered.
func (d *draft) failedNow() bool {
	for _, s := range d.sandboxes {
		if s.answer == noAnswer {
			return true
		}
	}
	for _, c := range d.containers {
		if c.answer == noAnswer {
			return true
		}
	}
	return false
}
