"""The commands of `prisma study`, one file each."""
