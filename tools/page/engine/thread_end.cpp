/// What is destroyed at the end of a thread: nothing, for the page's one thread does not end.

extern "C" int __cxa_thread_atexit(void (*)(void*), void*, void*) {
  return 0;
}
