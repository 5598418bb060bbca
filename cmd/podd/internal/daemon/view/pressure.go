package view

import v1 "k8s.io/api/core/v1"

// A PressureMessage contains the kubelet's texts for a state of a pressure condition.
type PressureMessage struct {
	Reason, Message string // texts of the condition
	EventReason     string // reason of the event for a change to this state
}

// pressureMessages contains two messages for each pressure condition: without pressure, and under
// pressure.
var pressureMessages = map[v1.NodeConditionType][2]PressureMessage{
	v1.NodeMemoryPressure: {
		{Reason: "KubeletHasSufficientMemory", Message: "kubelet has sufficient memory available", EventReason: "NodeHasSufficientMemory"},
		{Reason: "KubeletHasInsufficientMemory", Message: "kubelet has insufficient memory available", EventReason: "NodeHasInsufficientMemory"},
	},
	v1.NodeDiskPressure: {
		{Reason: "KubeletHasNoDiskPressure", Message: "kubelet has no disk pressure", EventReason: "NodeHasNoDiskPressure"},
		{Reason: "KubeletHasDiskPressure", Message: "kubelet has disk pressure", EventReason: "NodeHasDiskPressure"},
	},
	v1.NodePIDPressure: {
		{Reason: "KubeletHasSufficientPID", Message: "kubelet has sufficient PID available", EventReason: "NodeHasSufficientPID"},
		{Reason: "KubeletHasInsufficientPID", Message: "kubelet has insufficient PID available", EventReason: "NodeHasInsufficientPID"},
	},
}

// PressureKinds are the pressure conditions in the order of the kubelet.
var PressureKinds = []v1.NodeConditionType{v1.NodeMemoryPressure, v1.NodeDiskPressure, v1.NodePIDPressure}

// MessageForPressure returns the message of a pressure condition. exists reports whether the
// node is under this kind of pressure.
func MessageForPressure(kind v1.NodeConditionType, exists bool) PressureMessage {
	if exists {
		return pressureMessages[kind][1]
	}
	return pressureMessages[kind][0]
}
