package main // want `package main has no comment`

func main() {}
