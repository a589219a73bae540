package dryrun

var RunObject = &runObject
