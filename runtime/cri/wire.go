package cri

import (
	"google.golang.org/protobuf/encoding/protowire"

	"podd/runtime"
)

// Every relist of a hundred pods contains the same labels and annotations. The types below
// therefore decode only the fields that show whether a sandbox or container changed. They
// retain the rest as bytes, which are decoded only after a change. The field numbers are
// those of cri-api.

// A wireList is a partly decoded ListPodSandboxResponse or ListContainersResponse.
type wireList struct{ items []wireItem }

// A wireItem is a partly decoded PodSandbox or Container. Its slices point into the buffer
// of the list.
type wireItem struct {
	id, sandbox []byte
	state       uint64
	raw         []byte // the whole encoded message
}

const (
	listItemsField = 1 // field number of the items in both list responses

	itemIDField           = 1 // field number of the ID in PodSandbox and Container
	containerSandboxField = 2
	sandboxStateField     = 3
	containerStateField   = 6
)

// UnmarshalBinary decodes a list. It retains b.
func (l *wireList) UnmarshalBinary(b []byte) error {
	return eachField(b, func(n protowire.Number, f wireField) error {
		if n != listItemsField || f.bytes == nil {
			return nil
		}
		l.items = append(l.items, wireItem{raw: f.bytes})
		return nil
	})
}

// readSandbox decodes the needed fields of a PodSandbox.
func (i *wireItem) readSandbox() error {
	return eachField(i.raw, func(n protowire.Number, f wireField) error {
		switch n {
		case itemIDField:
			i.id = f.bytes
		case sandboxStateField:
			i.state = f.number
		}
		return nil
	})
}

// readContainer decodes the needed fields of a Container.
func (i *wireItem) readContainer() error {
	return eachField(i.raw, func(n protowire.Number, f wireField) error {
		switch n {
		case itemIDField:
			i.id = f.bytes
		case containerSandboxField:
			i.sandbox = f.bytes
		case containerStateField:
			i.state = f.number
		}
		return nil
	})
}

// A wireEvent contains the needed fields of a ContainerEventResponse. It omits the status
// of the pod's containers, which is most of the message.
type wireEvent struct {
	kind            uint64
	namespace, name string
	instance        string
}

const (
	eventKindField    = 2
	eventSandboxField = 4

	statusMetadataField = 2
	statusLabelsField   = 7

	metadataNameField      = 1
	metadataNamespaceField = 3

	entryKeyField   = 1
	entryValueField = 2
)

// UnmarshalBinary decodes an event. It does not retain b.
func (e *wireEvent) UnmarshalBinary(b []byte) error {
	*e = wireEvent{}
	return eachField(b, func(n protowire.Number, f wireField) error {
		switch n {
		case eventKindField:
			e.kind = f.number
		case eventSandboxField:
			return eachField(f.bytes, e.readStatus)
		}
		return nil
	})
}

// readStatus decodes the field f, with the number n, of the event's PodSandboxStatus.
func (e *wireEvent) readStatus(n protowire.Number, f wireField) error {
	switch n {
	case statusMetadataField:
		return eachField(f.bytes, func(n protowire.Number, f wireField) error {
			switch n {
			case metadataNameField:
				e.name = string(f.bytes)
			case metadataNamespaceField:
				e.namespace = string(f.bytes)
			}
			return nil
		})
	case statusLabelsField:
		var key, value []byte
		err := eachField(f.bytes, func(n protowire.Number, f wireField) error {
			switch n {
			case entryKeyField:
				key = f.bytes
			case entryValueField:
				value = f.bytes
			}
			return nil
		})
		if string(key) == runtime.LabelInstance {
			e.instance = string(value)
		}
		return err
	}
	return nil
}

// A wireField is the value of one protobuf field: a number, or bytes of the message.
type wireField struct {
	number uint64
	bytes  []byte
}

// eachField calls visit for each field of a message. It skips fields with wire types that
// CRI does not use.
func eachField(b []byte, visit func(protowire.Number, wireField) error) error {
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return protowire.ParseError(n)
		}
		b = b[n:]
		var f wireField
		switch kind {
		case protowire.VarintType:
			f.number, n = protowire.ConsumeVarint(b)
		case protowire.BytesType:
			f.bytes, n = protowire.ConsumeBytes(b)
		default:
			n = protowire.ConsumeFieldValue(number, kind, b)
		}
		if n < 0 {
			return protowire.ParseError(n)
		}
		if err := visit(number, f); err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}
